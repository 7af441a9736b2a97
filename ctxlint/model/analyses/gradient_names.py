"""The input that a gradient is for, by its name: ``grad_sampling_loc`` is for ``sampling_locations``."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import combinations, islice, pairwise
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.values import NONE
from ctxlint.model.syntax import root_name
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from ctxlint.model.function import FunctionClass, Input


def named_input(node: cst.CSTNode | None, inputs: Sequence[Input]) -> int | None:
    """The input that an expression is the gradient of, according to its first name."""
    name = root_name(node)
    return None if name is None else input_behind_name(name, inputs)


def input_behind_name(name: str, inputs: Sequence[Input]) -> int | None:
    """The input that a variable is the gradient of, according to its name."""
    return _input_of(_GRADIENT_OF.sub("", name.lower()), inputs)


def is_for_an_input(node: cst.CSTNode, inputs: Sequence[Input]) -> bool:
    """Whether an expression is the gradient of some input, according to its first name: also ``grad_input`` for any."""
    stem = _GRADIENT_OF.sub("", (root_name(node) or "").lower())
    return re.fullmatch(r"i|ins?|inputs?", stem) is not None or named_input(node, inputs) is not None


def exactly_named_input(node: cst.CSTNode | None, inputs: Sequence[Input]) -> int | None:
    """Like ``named_input``, only for an input with the whole name."""
    at, name = named_input(node, inputs), root_name(node)
    return at if at is not None and name is not None and inputs[at].name.lower() in name.lower() else None


def has_name_of(node: cst.CSTNode | None, inputs: Sequence[Input]) -> int | None:
    """The one input whose very name, with the usual affixes, is that of a variable: ``grad_x`` or ``loss_wrt_x``."""
    name = node.value if isinstance(node, cst.Name) else ""
    words = _without_affixes(name.lower())
    found = [each.index for each in inputs if _joined(each.name) in words] if words else []
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=4096)
def _without_affixes(name: str) -> frozenset[str]:
    """The words of the input that a variable may be named after; empty if it has no affix of a gradient."""
    return frozenset("".join(_words(each.sub("", name))) for each in (_GRADIENT_OF, _WRT)) - {name}


@lru_cache(maxsize=4096)
def _joined(name: str) -> str:
    return "".join(_words(name.lower()))


def leaves_out(fn: FunctionClass, returned: Iterable[cst.CSTNode | None], others: Container[int]) -> bool:
    """Whether backward computes a gradient that is not ``returned``: for one of ``others``, or one that is not read."""
    if fn.backward is None:
        return False
    used = {root_name(node) for node in returned}
    read = fn.backward.facts.names_read
    for each in fn.backward.facts.of(Assigned):
        name = each.name.lower()
        stem = _GRADIENT_OF.sub("", name)
        if each.name in used or stem == name or each.value == NONE:
            continue
        if _input_of(stem, fn.inputs) in others or ("grad" in name and each.name not in read):
            return True
    return False


def outputs_by_name(gradients: Sequence[str], outputs: Sequence[str | None]) -> tuple[int, ...] | None:
    """The output that each parameter of backward is the gradient of, according to the names; None if that is open.

    Without names that tell otherwise, the parameters are the gradients of the first outputs.
    """
    first = tuple(range(len(gradients)))
    named = [_named_output(each, outputs) for each in gradients]
    if all(found in (None, at) for at, found in enumerate(named)):
        return _numbered(gradients, len(outputs)) if set(named) == {None} else first
    if any(found not in (None, at) and _is_generic(gradients[at]) for at, found in enumerate(named)):
        return None
    fitting = [
        each
        for each in islice(combinations(range(len(outputs)), len(gradients)), _MANY)
        if all(found in (None, at) for at, found in zip(each, named))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _numbered(gradients: Sequence[str], outputs: int) -> tuple[int, ...] | None:
    """The outputs of numbered parameters, ``g1`` or ``g0`` for the first; None if both counts are possible."""
    first = tuple(range(len(gradients)))
    numbers = [re.fullmatch(r"(.*\D)(\d+)", each) for each in gradients]
    found = tuple((each[1], int(each[2])) for each in numbers if each is not None)
    if len(found) < len(gradients) or len({prefix for prefix, _number in found}) > 1:
        return first
    counted = [tuple(number - base for _prefix, number in found) for base in (0, 1)]
    if first in counted or any(after <= before for before, after in pairwise(counted[0])):
        return first
    within = [each for each in counted if each[0] >= 0 and each[-1] < outputs]
    return within[0] if len(within) == 1 else None


def _named_output(gradient: str, outputs: Sequence[str | None]) -> int | None:
    """The one output whose name, or its abbreviation, a parameter of backward has."""
    name = gradient.lower()
    for stem in dict.fromkeys((_GRADIENT_OF.sub("", name), re.sub(r"^g_?", "", name))):
        for matches in (_equal, _abbreviate):
            words = _words(stem)
            found = [at for at, each in enumerate(outputs) if each and words and matches(words, _words(each.lower()))]
            if found:
                return found[0] if len(found) == 1 else None
    return None


def _is_generic(gradient: str) -> bool:
    """Whether a name fits the gradient of any output: ``grad_output``, ``dout``."""
    return re.fullmatch(r"o|outs?|outputs?|", _GRADIENT_OF.sub("", gradient.lower())) is not None


_MANY = 10_000
"""The number of placements that are looked at."""

_GRADIENT_OF = pattern(r"^(?:grads?_?(?:of_|wrt_)?|d_?l_?d_?|d_?)|_grads?$|_?grad$")
"""Affixes of gradient names, in addition to the name of the input."""


_WRT = pattern(r"^.*wrt_?")


def _input_of(stem: str, inputs: Sequence[Input]) -> int | None:
    """The one input with this name, or with words that it abbreviates: ``attn_weight`` for ``attention_weights``."""
    words = _words(stem)
    for matches in (_equal, _abbreviate):
        found = [each.index for each in inputs if words and matches(words, _words(each.name.lower()))]
        if found:
            return found[0] if len(found) == 1 else None
    return None


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(each for each in name.split("_") if each)


def _equal(short: Sequence[str], full: Sequence[str]) -> bool:
    return short == full


def _abbreviate(short: Sequence[str], full: Sequence[str]) -> bool:
    """Whether each word has the first letter of the other's word, and its letters in order; or is its plural."""
    return len(short) == len(full) and all(map(_abbreviates, short, full))


def _abbreviates(short: str, full: str) -> bool:
    if short.rstrip("s") == full.rstrip("s"):
        return True
    letters = iter(full)
    return len(short) > 1 and short[0] == full[0] and all(letter in letters for letter in short)
