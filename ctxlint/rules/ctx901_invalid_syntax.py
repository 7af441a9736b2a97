"""CTX901: a statement that cannot be parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.source.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class InvalidSyntax(Rule[SourceFile]):
    """
    ## What it does
    Reports a top-level statement that cannot be parsed, in a file that may hold a `torch.autograd.Function`.

    ## Why is this bad?
    What cannot be parsed is not checked, so silence about it means nothing. The other statements of the file are
    checked as always. The finding is there whatever `--select` says; `--ignore CTX901` turns it off.

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
    Files without a candidate for a Function are never parsed, and so never reported. The words of the message are those
    of the Python that ctxlint runs on, and syntax that is newer than that Python is reported too.

    ## References
    - [The Python language reference](https://docs.python.org/3/reference/grammar.html)
    """

    code = "CTX901"
    name = "invalid-syntax"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        """One finding for each statement."""
        for broken in file.broken:
            message = f"This statement is not checked, as it cannot be parsed: {broken.message}"
            if not message.endswith((".", "?", "!")):
                message += "."
            yield Finding(Span(broken.position, broken.position), message)
