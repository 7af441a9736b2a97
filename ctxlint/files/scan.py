"""Does this file matter? Asked of its bytes, before anything is decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def holds_candidate(data: bytes) -> bool:
    """Whether a file may hold a class that the model would accept, or a custom operator with a gradient.

    This misses none. The model accepts what it can follow to ``torch.autograd``: the word ``autograd`` stands where it
    is imported or spelled out, and ``Function`` where it is imported or used, alone or in ``InplaceFunction``. The
    gradient of an operator is given by ``register_autograd``. Python has no way to break a name in two, and every
    encoding that ``decode`` accepts writes ASCII as it is, so the bytes show the words; UTF-16 is not accepted.

    A file that takes its base from another file of the project by a name of its own is such a candidate only if it
    says these words too; ``Mentions`` finds the others once such names are known.
    """
    if b"autograd" not in data:
        return False
    return b"Function" in data or b"register_autograd" in data


class Mentions:
    """Finds files that import something by its name, or the module that it is in and use it as an attribute."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        """``names`` are what is looked for, by the last part of the names of the modules that have them."""
        self.by_module = {module.encode(): frozenset(map(str.encode, found)) for module, found in names.items()}
        self.names = frozenset[bytes]().union(*self.by_module.values())

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes may use one of the names. Imports are looked at first: they are short."""
        through_modules: set[bytes] = set()
        for statement in _imports(data):
            start, imported = (*_IMPORT.split(statement, maxsplit=1), b"")[:2]
            words = _words(imported)
            if b"from" in start:
                path = start.partition(b"from")[2].rstrip(_BLANK)
                modules = [b"", *_words(path)]  # no word at all is left of a string
                known = self.by_module.get(modules[-1], _NOTHING) if path[-1:] != b"." else self.names
                if not known.isdisjoint(words) or (known and b"*" in imported):
                    return True
                through_modules |= known  # it may be a class that has the name
            for word in words:
                through_modules |= self.by_module.get(word, _NOTHING)
        return bool(through_modules) and not through_modules.isdisjoint(_ATTRIBUTE.findall(data))


_BLANK = b" \t\r\n\\"
_NOTHING: frozenset[bytes] = frozenset()
_IMPORT = re.compile(rb"\bimport\b")
_ATTRIBUTE = re.compile(rb"\.\s*(\w+)")
_BLANKS = bytes(code if code >= 128 or chr(code).isalnum() or code == 95 else 32 for code in range(256))


def _words(data: bytes) -> list[bytes]:
    return data.translate(_BLANKS).split()


def _imports(data: bytes) -> Iterator[bytes]:
    """What looks like an import statement; a part of a string or comment may look so, too."""
    at = data.find(b"import")
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        while start > 1 and data[start - 2 : start] == _CONTINUED:
            start = data.rfind(b"\n", 0, start - 1) + 1
        end = _line_end(data, at)
        bracket = data.find(b"(", at, end)
        if bracket >= 0:
            end = max(data.find(b")", bracket), end)
        before = data[start:at].rpartition(b";")[2].strip()
        if not before or before.startswith(b"from") or before.endswith(b":") or b" from " in before:
            yield data[start:end]
        at = data.find(b"import", end)


_CONTINUED = b"\\\n"


def _line_end(data: bytes, at: int) -> int:
    """The end of the line, and of those that a backslash joins to it."""
    end = data.find(b"\n", at)
    while end > 0 and data[end - 1 : end + 1] == _CONTINUED:
        end = data.find(b"\n", end + 1)
    return end if end >= 0 else len(data)
