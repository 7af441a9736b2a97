"""The base class of rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from ctxlint.model.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings

__all__ = ["Category", "Finding", "FixAvailability", "Rule"]


class Category(Enum):
    """What kind of problem a rule is about."""

    CORRECTNESS = "correctness"
    """Raises, or gives wrong gradients."""
    SUSPICIOUS = "suspicious"
    """Usually works, but misleads or breaks in other cases."""
    PERFORMANCE = "performance"
    """Wastes memory or time."""
    MODERNIZE = "modernize"
    """Outdated, with a newer alternative."""
    PEDANTIC = "pedantic"
    """Legal; some projects disallow it."""


class FixAvailability(Enum):
    """Whether a rule's findings come with a fix."""

    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NEVER = "never"


Subject = TypeVar("Subject")


class Rule(ABC, Generic[Subject]):
    """One claim about the contract of ``torch.autograd.Function``.

    A rule's docstring is its documentation page. Its ``subject`` is the type that it checks: FunctionClass, ApplyCall
    or SourceFile (see ``ctxlint.model.function``). ``check`` is pure: the same subject gives the same findings, and
    there is no state between calls.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    subject: ClassVar[type]
    category: ClassVar[Category] = Category.CORRECTNESS
    default: ClassVar[bool] = True
    fix: ClassVar[FixAvailability] = FixAvailability.NEVER
    since: ClassVar[str] = "0.1.0"
    default_in_view: ClassVar[bool] = False
    """Whether a rule that is off by default reports what a use in the project makes certain: ``Finding.in_view``."""
    unnecessary: ClassVar[bool] = False
    """Whether the reported code is unnecessary; editors show it faded."""
    about_backward: ClassVar[bool] = False
    """Whether all consequences occur only when autograd runs backward; the rule is skipped if that never happens."""
    holds_unreached: ClassVar[bool] = False
    """Whether a finding holds where something before it in the method certainly raises: it is about a signature, a name
    or the number of values. Others are left out there, until what raises is corrected."""
    about_definition: ClassVar[bool] = False
    """Whether the consequences come when the class is defined, also if code replaces its methods, or it, afterwards."""
    about_gradients: ClassVar[bool] = False
    """Whether the consequences come when torch takes the gradients that backward returns: where something in backward
    certainly raises before, ``run.check_file`` adds that condition to the messages."""
    about_values: ClassVar[bool] = False
    """Whether the consequences come from the values of gradients: where torch rejects the number of gradients in that
    return, the messages get that condition."""
    about_context: ClassVar[bool] = False
    """Whether the consequences come when torch reads the ctx, once forward and ``setup_context`` have returned: where
    one of these certainly raises, the messages get that condition, too."""
    about_results: ClassVar[bool] = False
    """Whether the consequences come when ``apply`` returns: where it raises, the messages get that condition."""
    says_if_it_runs: ClassVar[bool] = False
    """Whether the messages say "if this line runs" where something before it raises; then nothing is left out."""

    def may_be_in_view(self, subject: Subject) -> bool:  # noqa: ARG002
        """Whether a finding about ``subject`` may be ``in_view``: a cheap test, as most have no such use."""
        return self.default_in_view

    @abstractmethod
    def check(self, subject: Subject, settings: Settings) -> Iterator[Finding]:
        """Yield a finding for each place in ``subject`` that violates the claim."""
