"""What a rule is."""

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
    """What kind of trouble a rule is about."""

    CORRECTNESS = "correctness"
    """Raises, or gives wrong gradients."""
    SUSPICIOUS = "suspicious"
    """Works in the usual case and misleads or breaks in another."""
    PERFORMANCE = "performance"
    """Costs memory or time for nothing."""
    MODERNIZE = "modernize"
    """An old way for which a newer one exists."""
    PEDANTIC = "pedantic"
    """Legal; some projects want it otherwise."""


class FixAvailability(Enum):
    """Whether a rule's findings come with a fix."""

    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NEVER = "never"


Subject = TypeVar("Subject")


class Rule(ABC, Generic[Subject]):
    """One claim about the contract of ``torch.autograd.Function``.

    A rule's docstring is its documentation page. Its ``subject`` says what it reads: FunctionClass, ApplyCall or
    SourceFile (see ``ctxlint.model.function``). ``check`` is pure: the same subject gives the same findings, and
    nothing is kept between calls.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    subject: ClassVar[type]
    category: ClassVar[Category] = Category.CORRECTNESS
    default: ClassVar[bool] = True
    fix: ClassVar[FixAvailability] = FixAvailability.NEVER
    since: ClassVar[str] = "0.1.0"
    unnecessary: ClassVar[bool] = False
    """Whether what it points at is there for nothing; editors show that faded."""
    about_backward: ClassVar[bool] = False
    """Whether all it says comes true only when autograd runs backward; it is not asked where that never happens."""

    @abstractmethod
    def check(self, subject: Subject, settings: Settings) -> Iterator[Finding]:
        """Yield a finding for each place in ``subject`` that breaks the claim."""
