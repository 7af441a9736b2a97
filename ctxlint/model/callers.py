"""What one file says about the Functions of others, and what a run over many files makes of it for each.

Both are plain frozen records that can be pickled, compared and hashed: worker processes hand the first ones out and
take the second ones in, and what is found in a file depends on nothing else but its text, its settings and the files
that its imports lead to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.files.modules import locate
from ctxlint.model.apply_calls import ArgumentKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.functions import ApplyCall


class Target(NamedTuple):
    """A Function of the project: the absolute path of its file, and its qualified name there."""

    path: str
    qualname: str

    @property
    def key(self) -> str:
        """Its name in ``SourceFile.by_name`` of another file."""
        return f"{self.path}:{self.qualname}"


class OpenInput(NamedTuple):
    """Whether a call may show that an input is a tensor, or is something else."""

    to_tensor: bool
    to_other: bool


class Own(NamedTuple):
    """A Function that a file defines, and what decides whether a call elsewhere can tell anything new about it.

    ``required`` is how many inputs it must be given. A call that passes one of ``numbers`` of inputs says something by
    that; where they are None, one that passes more than ``required``.
    ``inputs`` are the inputs in order; ``waits`` says that there may be more to say where it is applied.
    """

    qualname: str
    required: int
    numbers: tuple[int, ...] | None
    inputs: tuple[OpenInput, ...]
    waits: bool

    def learns_from(self, call: ApplyCall) -> bool:
        """Whether a call passes something whose kind shows, or inputs that it could leave out."""
        if call.how not in ("apply", "construct-apply") or call.expects_error:
            return False
        passed = call.positional + len(call.keywords)
        if passed in self.numbers if self.numbers is not None else passed > self.required:
            return True
        return any(
            each.to_tensor if kind is ArgumentKind.TENSOR else each.to_other
            for kind, each in zip(call.arguments, self.inputs)
            if kind.tells
        )


class Alias(NamedTuple):
    """A module (its file) that another file gives a new attribute: ``ops.softmax = Softmax.apply``."""

    path: str
    name: str
    target: Target


@dataclass(frozen=True)
class FileFacts:
    """What a file says that matters to others. ``path`` is absolute.

    ``functions`` are its own Functions, and ``names`` are pairs: what the file calls in a new way
    (the last part of the name), and how it calls it (``softmax = Softmax.apply``, ``from .ops import Softmax as S``).
    ``stars`` are the modules that it imports with a star, by the last parts of their names.
    ``called`` are the dotted names, as imported, of what it calls and does not define itself. All else is about
    Functions of other files: how they are called, whose ``apply`` is read, whose methods are called by hand, which have
    subclasses here, and which are changed from here.
    """

    path: str
    functions: tuple[Own, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    stars: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()
    calls: tuple[tuple[Target, ApplyCall], ...] = ()
    applied: tuple[Target, ...] = ()
    by_hand: tuple[tuple[Target, str], ...] = ()
    subclassed: tuple[Target, ...] = ()
    patched: tuple[Target, ...] = ()


@dataclass(frozen=True)
class OutsideFacts:
    """What the other files of a run say that matters to one file.

    ``names`` are names that it calls and that mean Functions, or the ``apply`` of one, somewhere in the project: they
    are worth following. ``aliases`` are attributes of modules that no module defines itself. The others are about the
    Functions of the file, by their qualified names, as in ``FileFacts``.
    """

    names: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()
    calls: tuple[ApplyCall, ...] = ()
    applied: tuple[str, ...] = ()
    by_hand: tuple[tuple[str, str], ...] = ()
    subclassed: tuple[str, ...] = ()
    patched: tuple[str, ...] = ()

    @property
    def functions(self) -> frozenset[str]:
        """The Functions of the file that are called elsewhere, or whose ``apply`` is read there."""
        return frozenset((*self.applied, *(call.function for call in self.calls)))


NOTHING = OutsideFacts()
"""What a file that is linted alone knows of others but by its own imports."""


@dataclass(frozen=True)
class KnownNames:
    """What one project calls its Functions and their ``apply``, by the last parts of names, in order.

    ``aliases`` are the attributes that modules get from other files, where all agree on what that is.
    """

    names: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()

    def told_to(self, path: str, called: Iterable[str]) -> OutsideFacts:
        """What of this the file ``path`` has a use for, which calls what is ``called`` so (see ``FileFacts``)."""
        names = frozenset(self.names)
        found = {name.rpartition(".")[2] for name in called if name.rpartition(".")[2] in names and locate(path, name)}
        return OutsideFacts(tuple(sorted(found)), tuple(alias for alias in self.aliases if alias.name in found))
