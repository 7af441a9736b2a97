"""Is this file relevant? Decided from its bytes, before anything is decoded."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from ctxlint.source.disguise import contains_hidden_words, contains_words
from ctxlint.source.imports import imports_in, read_import

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Mapping

    from ctxlint.source.imports import Import, Imports


def holds_candidate(data: bytes) -> bool:
    """Whether a file may contain a class that the model would accept, or a custom operator with a gradient.

    There are no false negatives. The model accepts what it can resolve to ``torch.autograd``: the name ``autograd``
    occurs where it is imported or spelled out, and ``Function`` where it is imported or used, alone or at the end of
    ``InplaceFunction``. The gradient of an operator is registered by ``register_autograd``. Python cannot split a name,
    so the bytes contain the words, or else they are hidden (see ``disguise``).

    A file whose base has another name, from another file of the project, is a candidate here only if it contains these
    words too; ``Mentions`` finds the others once such names are known. The same applies to a file that gives what looks
    like a module a ``backward`` of its own, and to one that defines a custom operator with ``torch.library``, or
    with a function of the project that is called like that, or a fake.
    """
    if contains_words(data) or (b"def backward(self" in data and b"def forward(self" in data):
        return True
    if b"library" in data and any(map(data.__contains__, _DEFINING_OPERATORS)):
        return True
    if any(map(data.__contains__, (b"register_fake", b"mutates_args", b"register_custom_op", b".impl("))):
        return True
    return may_hold_gradient(data) or contains_hidden_words(data)


def may_hold_gradient(data: bytes) -> bool:
    """Whether a file may define functions that another one registers as the gradient of a custom operator."""
    named = b"ctx" in data or b"saved_tensors" in data or b"save_for_backward" in data
    lines = b"\n" + data if named else b""
    return named and ((b"setup_context" in data and _SETS_UP(lines) is not None) or _takes_ctx(lines))


def _takes_ctx(data: bytes) -> bool:
    """Whether a function has ``ctx`` among its parameters: between its name and the next closing parenthesis."""
    searched = 0
    for found in _DEFINITION(data):
        if found.start() >= searched:
            end = data.find(b")", found.end())
            searched = len(data) if end < 0 else end
            if _CTX(data, found.end(), searched):
                return True
    return False


_DEFINING_OPERATORS = (b"custom_op", b"triton_op", b".impl", b"register_kernel")
_SETS_UP = re.compile(rb"\ndef \w*setup_context").search
_DEFINITION = re.compile(rb"\ndef \w+\s*\(").finditer
"""With a literal start, which is found five times as fast as ``^``."""
_CTX = re.compile(rb"\b(?:ctx|context)\b").search
NAMES_OF_CTX = frozenset({"ctx", "context"})
"""Parameters of functions that may be part of a gradient. Others may have ``setup_context`` in their names."""


class Search(Protocol):
    """A search for files by their bytes. ``question`` identifies it: equal ones find the same."""

    @property
    def question(self) -> str:
        """What is searched for."""

    @property
    def parts(self) -> frozenset[Hashable]:
        """What is searched for: a search finds at least the files that one for some of its parts finds."""

    def limited_to(self, parts: Container[Hashable]) -> Search:
        """A search for some of these parts."""

    def in_data(self, data: bytes) -> bool:
        """Whether it finds a file with these bytes."""

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file.

        Raises:
            Unreadable: The file cannot be read.
        """


class Mentions:
    """Finds files that import something by its name, or import its module and use it as an attribute."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        """``names`` are the names to find, by the last part of the names of the modules that have them."""
        # A module is named like its file, whose name may not be decodable.
        self.by_module = {
            module.encode("utf-8", "surrogatepass"): frozenset(map(str.encode, found))
            for module, found in names.items()
        }
        self.names = frozenset[bytes]().union(*self.by_module.values())
        self._through: dict[bytes, frozenset[bytes] | None] = {}

    @cached_property
    def question(self) -> str:
        """The names by module."""
        return repr(sorted((module, sorted(names)) for module, names in self.by_module.items()))

    @property
    def parts(self) -> frozenset[Hashable]:
        """The modules, each with a name."""
        return frozenset((Mentions, module, name) for module, names in self.by_module.items() for name in names)

    def limited_to(self, parts: Container[Hashable]) -> Mentions:
        """A search for some of these modules and names."""
        found = Mentions({})
        for module, names in self.by_module.items():
            found.by_module[module] = frozenset(name for name in names if (Mentions, module, name) in parts)
        found.names = frozenset[bytes]().union(*found.by_module.values())
        return found

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes may use one of the names."""
        return self.among(imports_in(data), lambda: data)

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        if not self.names or not imports.may_lead_to(path, self.names):
            return False
        return self.among(imports.of_file(path), lambda: imports.content(path))

    def among(self, statements: Iterable[bytes], data: Callable[[], bytes]) -> bool:
        """Whether a file with these imports may use one of the names; ``data`` is read if they are not sufficient."""
        attributes: set[bytes] = set()
        for statement in statements:
            if statement not in self._through:
                self._through[statement] = self._imported(read_import(statement))
            through = self._through[statement]
            if through is None:
                return True
            attributes |= through
        return bool(attributes) and _has_attribute(data(), attributes)

    def _imported(self, statement: Import) -> frozenset[bytes] | None:
        """What may be used as attributes of what a statement imports; None if it imports one of the names."""
        known = self.by_module.get(statement.module, _NOTHING) if statement.module is not None else self.names
        if not known.isdisjoint(statement.words) or (known and statement.star):
            return None
        # An import from a module of such a name may be a class that has it.
        return known.union(*(self.by_module.get(word, _NOTHING) for word in statement.words))


class Transforming:
    """Finds files that use transforms of ``torch.func``, or forward-mode AD."""

    question = "transforms"

    def __init__(self) -> None:
        """The patterns are loaded here: few runs search for transforms."""
        from ctxlint.torch_api.transforms import may_use_transforms

        self._may_use = may_use_transforms

    @property
    def parts(self) -> frozenset[Hashable]:
        """It has only one."""
        return frozenset({Transforming})

    def limited_to(self, parts: Container[Hashable]) -> Transforming:  # noqa: ARG002
        """The same."""
        return self

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes uses one."""
        return self._may_use(data)

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        return self.in_data(imports.content(path))


_NOTHING: frozenset[bytes] = frozenset()


def _has_attribute(data: bytes, names: Iterable[bytes]) -> bool:
    """Whether one of the names occurs after a dot."""
    return any(name in data and re.search(rb"\.\s*%b\b" % re.escape(name), data) is not None for name in names)
