"""CTX910: a suppression that hides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.source.source import Span
from ctxlint.suppression.unused import UnusedDirective, codes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnusedSuppression(Rule[UnusedDirective]):
    """
    ## What it does
    Reports comments that hide no finding although they name rules of ctxlint, or are addressed to it.

    ## Why is this bad?
    A comment that hides nothing today hides the next fault on its line, and tells readers of one that is not there.

    ## Example
    ```python
    from torch.autograd import Function


    class Negate(Function):
        @staticmethod
        def forward(ctx, x):
            return -x  # noqa: CTX301

        @staticmethod
        def backward(ctx, grad_output):
            return -grad_output
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
    The fix is safe. It takes out the codes that hide nothing, with their comment where nothing else is in it. Codes of
    other linters and a reason stay. There is no fix where the reason by itself would be a comment that tools obey.

    ## Known limits
    Nothing is said of a bare `# noqa`, which may be for another linter; about files that hold no candidate for a
    Function, or a statement that cannot be parsed; and with `--ignore-noqa`. A code counts as used where its rule would
    find something, also when that rule is off.

    ## References
    - [flake8: selecting and ignoring violations](https://flake8.pycqa.org/en/latest/user/violations.html)
    """

    code = "CTX910"
    name = "unused-suppression"
    subject = UnusedDirective
    category = Category.PEDANTIC
    default = False
    unnecessary = True
    fix = FixAvailability.SOMETIMES

    def check(self, unused: UnusedDirective, settings: Settings) -> Iterator[Finding]:
        """One finding for each directive."""
        source, directive = unused.source, unused.directive
        span = Span(source.position(directive.start), source.position(directive.end))
        subject = f"`{unused.text}`" if unused.whole else f"{codes_of(unused.words)} in `{unused.text}`"
        one = unused.whole or len(unused.words) == 1
        if unused.unknown:
            message = f"{subject} {'names' if one else 'name'} no rule of ctxlint. Remove {'it' if one else 'them'}."
        else:
            message = f"{subject} {'hides' if one else 'hide'} nothing. Remove {'it' if one else 'them'}."
        yield Finding(span, message, unused.removal())
