"""Records behave like frozen dataclasses before and after they are completed, and so do LibCST's nodes."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import field, fields, replace

import pytest

from ctxlint.patterns import pattern
from ctxlint.records import changed, entity, record


@record
class Point:
    """Two numbers and a note."""

    x: int
    y: int = 0
    note: list[str] = field(default_factory=list, compare=False)


@record
class Named(Point):
    """A point with a name."""

    name: str = ""


@record
class Sent:
    """Only ever received."""

    value: int


@entity
class Place:
    """Equal to nothing else."""

    x: int


def test_is_created_compared_and_replaced() -> None:
    """As a dataclass."""
    assert Named(1, name="a") == Named(1, 0, ["other"], "a") != Named(2, name="a")
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert Point(1) != Named(1)
    assert repr(Named(1, 2)) == "Named(x=1, y=2, note=[], name='')"
    assert replace(Named(1), name="b").name == "b"
    assert [each.name for each in fields(Named)] == ["x", "y", "note", "name"]
    assert Point(1).note is not Point(1).note


def test_changed_keeps_all_other_fields_and_nothing_derived() -> None:
    """As ``replace``."""
    old = Named(1, 2, ["a"], "b")
    vars(old)["derived"] = 3
    new = changed(old, name="c")
    assert new == replace(old, name="c")
    assert vars(new) == {"x": 1, "y": 2, "note": ["a"], "name": "c"}
    assert old.name == "b"


def test_identity() -> None:
    """An entity equals only itself."""
    assert Place(1) != Place(1)


def test_instance_from_another_process() -> None:
    """A pickle does not call ``__init__``."""
    received = pickle.loads(b"\x80\x04c%s\nSent\n)\x81}\x8c\x05valueK\x07sb." % __name__.encode())
    match received:
        case Sent(7):
            assert received == replace(received, value=7)
        case _:
            raise AssertionError(received)


NODES = """
import abc, dataclasses, pickle, sys
from ctxlint.libcst_import import import_libcst
original = dataclasses.dataclass, abc.ABC
import_libcst()
assert (dataclasses.dataclass, abc.ABC) == original
import libcst as cst
assert "libcst.metadata.position_provider" not in sys.modules
positions = cst.metadata.MetadataWrapper(cst.Module([])).resolve(cst.metadata.PositionProvider)
from libcst.metadata import Scope
assert type(cst.Name) is type and type(Scope) is abc.ABCMeta

@dataclasses.dataclass(frozen=True)
class Marked(cst.Name):
    mark: int = 0

def refused(kind, action):
    try:
        action()
    except kind:
        return True

name, module = cst.Name("x"), cst.parse_module("def f(a=1, *b):\\n    return a + b[2:3]  # c\\n")
assert refused(dataclasses.FrozenInstanceError, lambda: setattr(name, "value", "y"))
assert refused(dataclasses.FrozenInstanceError, lambda: delattr(name, "value"))
assert refused(cst.CSTValidationError, lambda: cst.Name("1 2"))
assert refused(TypeError, lambda: cst.Name(other=1)) and refused(AttributeError, lambda: cst.metadat)
assert Marked("y", mark=2).mark == 2 and name.with_changes(value="y").value == "y"
assert pickle.loads(pickle.dumps(module)).deep_equals(module) and module.deep_clone().code == module.code
"""


def test_nodes_of_libcst() -> None:
    """They are validated and frozen, one may derive from them, and metadata is imported on demand."""
    subprocess.run([sys.executable, "-c", NODES], check=True)


def test_patterns() -> None:
    """A regular expression is compiled when it is used."""
    broken, words = pattern("("), pattern(r"(\w+)!", re.IGNORECASE)
    with pytest.raises(re.error):
        broken.search("")
    assert words.findall("a! b c!") == ["a", "c"] == [each[1] for each in words.finditer("a! b c!")]
    assert words.flags & re.IGNORECASE
