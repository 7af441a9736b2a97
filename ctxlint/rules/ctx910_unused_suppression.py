"""CTX910: a suppression that suppresses nothing."""

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
    Reports suppression comments that suppress no finding, if they name rules of ctxlint or start with `ctxlint:`.

    ## Why is this bad?
    An unused comment suppresses the next defect on its line, and tells readers of a finding that does not exist.

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
    Safe: codes that suppress nothing are removed, and the comment too if nothing else is in it. Codes of other linters
    and a reason stay. There is no fix if the remaining reason would itself be a comment that tools interpret.

    ## Known limits
    A bare `# noqa` is not reported, because it may be for another linter. Nothing is reported in files without a
    candidate for a Function, for a statement that cannot be parsed, or with `--ignore-noqa`. A code counts as used if
    its rule would have a finding, even if that rule is disabled.

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
            message = f"{subject} {'suppresses' if one else 'suppress'} nothing. Remove {'it' if one else 'them'}."
        yield Finding(span, message, unused.removal())
