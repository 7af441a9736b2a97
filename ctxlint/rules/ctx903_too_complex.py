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
    Reports a Function that was not analysed, or not checked by every rule, because the analysis would take too long,
    or nest deeper than Python allows, as along a chain of hundreds of names.

    ## Why is this bad?
    Code that is not analysed is not checked, so the absence of findings says nothing about it. The other classes of the
    file are checked as usual. The limits are many times what the largest known Function needs: code that reaches them
    is generated, or written to slow down a linter. It is reported regardless of `--select`; `--ignore CTX903` disables
    it.

    ## Example
    A class that inherits from two hundred others, or deeply nested `finally` clauses:

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
    Move parts of a method to helper functions, and inherit from fewer classes.

    ```text
    first_and_all_others()
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    The limit counts steps of the analysis, not seconds: a file has the same findings on every machine. The total for
    all classes of a file is limited as well.

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
    """The message about a class."""
    return (
        f"`{name}` is too complex to analyse; it is not checked in full. Move code into functions, or use fewer bases."
    )
