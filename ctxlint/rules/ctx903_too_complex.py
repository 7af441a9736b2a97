"""CTX903: a Function that takes too much work to analyse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.source.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class TooComplex(Rule[SourceFile]):
    """
    ## What it does
    Reports a Function that was not analysed, or not by every rule, because that takes too much work.

    ## Why is this bad?
    What is not analysed is not checked, so silence about it means nothing. The other classes of the file are checked as
    always. The limits are many times what the largest Function known to us needs: code that reaches them is generated, or
    made to keep a linter busy. The finding is there whatever `--select` says; `--ignore CTX903` turns it off.

    ## Example
    A class that descends from two hundred others, or `finally` clauses in `finally` clauses:

    ```text
    try:
        first()
    finally:
        try:
            second()
        finally:
            ...  # and so on, twenty times
    ```

    ## Use instead
    Helper functions for what a method does, and fewer classes to inherit from.

    ```text
    first_and_all_others()
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Steps of the analysis are counted, not seconds: a file gets the same findings on every machine. The steps of all
    classes of a file are limited together, too.

    ## References
    - [The limits](https://github.com/ctxlint/ctxlint/blob/main/ctxlint/effort.py)
    """

    code = "CTX903"
    name = "too-complex"
    subject = SourceFile
    category = Category.SUSPICIOUS

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        """One finding for each class."""
        for each in file.too_complex:
            yield Finding(Span(each.position, each.position), too_complex(each.name))


def too_complex(name: str) -> str:
    """What is said about a class."""
    return (
        f"`{name}` is too complex to analyse; it is not checked in full. Move code into functions, or use fewer bases."
    )
