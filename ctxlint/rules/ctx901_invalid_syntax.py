"""CTX901: a statement that cannot be parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.model.index.parsing import LINE_NAMED
from ctxlint.rules.base import Finding, Rule
from ctxlint.source.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.index.parsing import BrokenStatement


class InvalidSyntax(Rule[SourceFile]):
    """
    ## What it does
    Reports a top-level statement that cannot be parsed, in a file that mentions torch and may define a
    `torch.autograd.Function`.

    ## Why is this bad?
    A statement that cannot be parsed is not checked, so the absence of findings says nothing about it. The other
    statements of the file are checked as usual. Adjacent statements that cannot be parsed are one finding, because the
    first error often causes the others. It is reported regardless of `--select`; `--ignore CTX901` disables it.

    ## Example
    ```python
    from torch.autograd import Function


    class Negate(Function):
        @staticmethod
        def forward(ctx, x)
            return -x
    ```

    ## Use instead
    ```python
    from torch.autograd import Function


    class Negate(Function):
        @staticmethod
        def forward(ctx, x):
            return -x

        @staticmethod
        def backward(ctx, grad_output):
            return -grad_output
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Files without a candidate for a Function are never parsed and never reported. The message is that of the Python that
    runs ctxlint, and syntax newer than that Python is reported too.

    ## References
    - [The Python language reference](https://docs.python.org/3/reference/grammar.html)
    """

    code = "CTX901"
    name = "invalid-syntax"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        """One finding for each run of such statements: the first error often makes the others."""
        if not file.functions and not file.source.mentions("torch"):
            return  # a parameter `ctx` made it look like part of a gradient
        for broken, following in _runs(file.broken):
            error = LINE_NAMED.sub(lambda found: f"{found[1]} {file.source.line_name(int(found[2]))}", broken.message)
            end = "" if error.endswith((".", "?", "!")) else "."
            what = "Syntax error" if broken.is_syntax else "Unsupported syntax"
            more = "one" if following == 1 else following
            unchecked = f"This statement and the next {more} were" if following else "The statement was"
            message = f"{what}: {error}{end} {unchecked} not checked."
            yield Finding(Span(broken.position, broken.position), message)


def _runs(statements: Iterable[BrokenStatement]) -> list[tuple[BrokenStatement, int]]:
    """The first statement of each run of adjacent syntax errors, and how many follow it."""
    runs: list[tuple[BrokenStatement, int]] = []
    for each in statements:
        if runs and each.follows and each.is_syntax and runs[-1][0].is_syntax:
            first, following = runs[-1]
            runs[-1] = first, following + 1
        else:
            runs.append((each, 0))
    return runs
