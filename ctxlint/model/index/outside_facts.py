"""The facts of one file about the Functions of others, and all facts of other files about the Functions of one.

Both are plain frozen records that can be pickled, compared and hashed: worker processes return the former and receive
the latter. The findings in a file depend on nothing else but its text, its settings and the files that its imports
resolve to.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.modules import locate, root_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.index.apply_calls import ApplyCall


class Target(NamedTuple):
    """A Function of the project: the absolute path of its file, and its qualified name there."""

    path: str
    qualname: str

    @property
    def key(self) -> str:
        """Its name in ``SourceFile.by_name`` of another file."""
        return f"{self.path}:{self.qualname}"


Deed = Literal[
    "declares",
    "differentiates",
    "changes",
    "uses",
    "registers",
    "derives",
    "makes",
    "keeps",
    "takes",
    "calls",
    "modifies",
    "tracks",
    "untracks",
    "sets",
    "replaces",
    "assigns",
    "chooses",
    "fills",
    "passes-detached",
    "passes-leaf",
    "passes-created",
    "passes-parameter",
    "passes-container",
    "passes-number",
    "passes-bool",
    "passes-string",
]
"""What other files of a project may do with a name."""


class ProjectQuestion(NamedTuple):
    """What a file has to know of its project: which other files do something with a name.

    ``path`` is the file of what the name denotes; empty for an operator, the root of the project for a name of torch
    that files may replace. The files that

    - ``declares``: declare an operator, whose ``name`` is that in ``torch.ops``: ``"lib::scale"``;
    - ``differentiates``: may register a gradient, or a kernel for autograd, of an operator with this ``name``;
    - ``changes``: may change a dict;
    - ``uses``: may use a function; ``registers``: the same, of the files that register gradients;
    - ``derives``: may have a subclass of a class; ``makes``: may make an object of a class for one call;
      ``keeps``: make one otherwise;
    - ``takes``: may import a name that the file imports itself;
    - ``calls``: call a function in the ``forward`` of a module;
    - ``modifies``: modify in place what a function, or a method of a class, returns;
    - ``tracks``, ``untracks``: call a function where grad mode may be on, or where it is off;
    - ``sets``: may set an attribute of torch that it lacks; ``replaces``: may set the one that it has, or the module
      that it is in; ``assigns``: may set some name of a module of the project. The answers are about the names: one is
      another with each keystroke;
    - ``passes-detached``, ``passes-leaf``, ``passes-created``: may call a function with a detached tensor, a leaf, or
      one that it creates with a ``requires_grad=``, at this ``position``;
    - ``passes-parameter``: certainly call a function with a parameter that a module trains, at this ``position``;
    - ``passes-container`` and the like: with such a value from that position on.
    """

    deed: Deed
    path: str
    name: str
    position: int = -1

    @property
    def about_a_use(self) -> bool:
        """Whether it is about what uses a function, for whatever."""
        return self.deed in ("uses", "registers")

    @property
    def answered_by_bytes(self) -> bool:
        """Whether a file answers it whose bytes look like it: nothing is parsed for that."""
        return self.about_a_use or self.deed == "differentiates"


class Declaration(NamedTuple):
    """The only file of a project that declares an operator."""

    name: str
    path: str


class OpenInput(NamedTuple):
    """Whether a call may show that an input is a tensor, is something else, or may be None.

    ``never_gets_gradient``: a call may show that it needs one.
    """

    to_tensor: bool
    to_other: bool
    to_none: bool
    never_gets_gradient: bool = False

    def learns_from(self, kind: ArgumentKind) -> bool:
        """Whether passing this kind adds information."""
        if kind is ArgumentKind.NONE:
            return self.to_none
        return kind.is_evidence and (self.to_tensor if kind is ArgumentKind.TENSOR else self.to_other)


class Own(NamedTuple):
    """A Function that a file defines, and what decides whether a call in another file can add facts about it.

    ``required`` is the number of required inputs. A call with one of ``numbers`` of inputs adds information; if
    ``numbers`` is None, a call with more than ``required`` does, or a starred one. ``inputs`` are in order;
    ``waits``: there may be more findings if it is applied; ``has_backward``: there are none if a result of it is
    differentiated; ``decided``: the calls in its own file rule something out, which another call may not. ``marks``: it
    marks inputs as dirty, which must be no leaves.
    """

    qualname: str
    required: int
    numbers: tuple[int, ...] | None
    inputs: tuple[OpenInput, ...]
    waits: bool
    has_backward: bool = True
    decided: bool = False
    marks: bool = False

    def learns_from(self, call: ApplyCall) -> bool:
        """Whether a call passes something of a known kind, frozen or optional inputs, or misses a backward or more.

        A detached tensor among the arguments adds nothing, nor does a leaf for an input that gets a gradient: they only
        qualify findings that there are already.
        """
        if call.frozen or call.transforms or call.differentiated_again or call.second_derivatives:
            return True
        if call.how.startswith("construct") or "self" in call.names:  # what has state
            return True
        if call.defaults or call.of_module or call.relayed or call.uncast or call.sliced:
            return True
        if any(code in ("None", "False", "True") for _at, code in call.literals):  # may decide a test of forward
            return True
        pairs = (*call.incoming, *call.enclosed)
        at_inputs = (*call.trained, *call.leaves, *call.lasting, *call.differentiated_inputs)
        passed_on = (*at_inputs, *(at for at, _name in pairs))
        if any(at < len(self.inputs) and self.inputs[at].never_gets_gradient for at in passed_on):
            return True
        if not call.applies or call.expects_error:
            return False
        if call.modifiable and self.marks:
            return True
        # Also for an input that may be a tuple according to a test of its type.
        if ArgumentKind.TENSORS in call.arguments:
            return True
        if self.decided or ((call.differentiated or call.enclosed or call.handed_on) and not self.has_backward):
            return True
        passed = call.positional + len(call.keywords)
        if passed in self.numbers if self.numbers is not None else passed + call.starred > self.required:
            return True
        return any(each.learns_from(kind) for kind, each in zip(call.arguments, self.inputs))


class NameAlias(NamedTuple):
    """A new attribute that another file gives to a module (its file): ``ops.softmax = Softmax.apply``."""

    path: str
    name: str
    target: Target


@record
class FileFacts:
    """The facts of a file that matter to others. ``path`` is absolute.

    ``functions`` are its own Functions, and ``names`` are pairs: the last part of a name, and the file's new name for
    it (``softmax = Softmax.apply``, ``from .ops import Softmax as S``). ``stars`` are the modules that it star-imports,
    by the last parts of their names. ``called`` are the dotted names, as imported, of what it calls and does not define
    itself. All other fields are about Functions of other files: how they are called, whose ``apply`` is read, whose
    methods are called directly, which have subclasses here, and which are modified here. ``unset`` are pairs of an own
    Function and an attribute that it reads of ctx, and that nothing here sets: another file may.

    ``asked`` is what the findings here depend on in files that no import leads to.

    ``at_stake`` are the keys of the Functions, own ones or of other files, with findings here: facts from others may
    suppress them. ``module_backwards``: a module here has a ``backward``, which another file may call.
    ``operators``: it may define custom operators, which another file may transform.
    """

    path: str
    functions: tuple[Own, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    stars: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    aliases: tuple[NameAlias, ...] = ()
    calls: tuple[tuple[Target, ApplyCall], ...] = ()
    applied: tuple[Target, ...] = ()
    direct_calls: tuple[tuple[Target, str], ...] = ()
    subclassed: tuple[Target, ...] = ()
    patched: tuple[tuple[Target, str], ...] = ()
    at_stake: tuple[str, ...] = ()
    module_backwards: bool = False
    operators: bool = False
    unset: tuple[tuple[str, str], ...] = ()
    asked: tuple[ProjectQuestion, ...] = ()

    @property
    def root(self) -> str:
        """The root of its project."""
        return root_of(os.path.dirname(self.path))

    @property
    def all_keys(self) -> frozenset[str]:
        """The keys of all Functions that the file defines or calls."""
        return frozenset((*(each.qualname for each in self.functions), *(target.key for target, _call in self.calls)))

    def target(self, key: str) -> Target:
        """The Function with this key."""
        path, _, qualname = key.rpartition(":")
        return Target(path or self.path, qualname)


@record
class OutsideFacts:
    """The facts of the other files of a project that matter to one file.

    ``names`` are names that it calls and that denote Functions, or the ``apply`` of one, somewhere in the project: they
    are worth resolving. ``aliases`` are attributes of modules that no module defines itself. The others are about the
    Functions that the file defines or calls, by their keys, as in ``FileFacts``. ``calls_backward``: another file
    passes a gradient to some ``backward``. ``stored`` are pairs of a Function and an attribute that it reads of ctx and
    that another file sets, on whatever object. ``declared`` are operators that the file uses, ``changed`` the dicts of
    functions that it uses and another file may change, and ``using`` the files that may use those of its functions that
    may be registered for an operator. ``partial``: there may be more facts, as the project is too
    large to search.
    """

    names: tuple[str, ...] = ()
    aliases: tuple[NameAlias, ...] = ()
    calls: tuple[ApplyCall, ...] = ()
    applied: tuple[str, ...] = ()
    direct_calls: tuple[tuple[str, str], ...] = ()
    subclassed: tuple[str, ...] = ()
    patched: tuple[tuple[str, str], ...] = ()
    calls_backward: bool = False
    stored: tuple[tuple[str, str], ...] = ()
    declared: tuple[Declaration, ...] = ()
    changed: tuple[ProjectQuestion, ...] = ()
    using: tuple[str, ...] = ()
    partial: bool = False

    @property
    def subjects(self) -> frozenset[str]:
        """The keys of the Functions that the facts are about."""
        methods = (key for key, _method in (*self.direct_calls, *self.patched))
        called = (call.function for call in self.calls)
        stored = (key for key, _attribute in self.stored)
        return frozenset((*called, *stored, *self.applied, *methods, *self.subclassed))

    @property
    def without_answers(self) -> OutsideFacts:
        """The facts apart from those that the project learns."""
        return replace(self, declared=(), changed=())


MODULE_BACKWARDS = "backward of modules"
"""The key of findings about these; no Function has it."""

OF_NO_FUNCTION = ""
"""The key of findings that are about no Function."""

NOTHING = OutsideFacts()
"""The facts for a file that is linted alone: none but those from its own imports."""


@record
class KnownNames:
    """A project's names for its Functions and their ``apply``, by the last parts of names, in order.

    ``aliases`` are the attributes that other files give to modules, if all agree on the meaning.
    """

    names: tuple[str, ...] = ()
    aliases: tuple[NameAlias, ...] = ()

    def relevant_to(self, path: str, called: Iterable[str]) -> OutsideFacts:
        """The facts that the file ``path`` can use, which calls the names ``called`` (see ``FileFacts``)."""
        names = frozenset(self.names)
        found = {name.rpartition(".")[2] for name in called if name.rpartition(".")[2] in names and locate(path, name)}
        return OutsideFacts(tuple(sorted(found)), tuple(alias for alias in self.aliases if alias.name in found))
