"""The parameters of a kernel written in Python, and how it reads them."""

from __future__ import annotations

import ast
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.index.kernel_addresses import LOAD, STEP, UNSURE, accesses_in, handed_on_by, nodes_of_kernel, within
from ctxlint.model.index.kernel_bindings import always_compiled
from ctxlint.model.index.kernel_blocks import blocks_in, unmasked_in
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, Scope
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import parameter_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctxlint.model.index.kernel_addresses import Access, Kernel
    from ctxlint.model.index.kernel_blocks import KernelBlocks

    _Known = dict[tuple[Definition, Aliases], tuple[Access, ...]]


def parameters_of(definition: Definition) -> list[str]:
    """The names of the parameters, in order."""
    return parameter_names(definition.unit.index.functions[definition.qualname].node.args)


def gets_bare_address(definition: Definition, parameter: str, aliases: Aliases) -> bool:
    """Whether a kernel gets a tensor as an address alone: it is one of Triton, not of numba or warp.

    Heuristics of the kernel may ask for strides, or test whether the tensor is None.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    asking = _heuristics(record.node) if record is not None else ""
    if record is None or ".stride(" in asking or f"'{parameter}'] is " in asking:
        return False
    return _is_of_triton(record.node, record.scope, aliases)


@lru_cache(maxsize=64)
def _is_of_triton(kernel: Kernel, scope: Scope, aliases: Aliases) -> bool:
    """Whether a decorator is that of Triton; asked as often."""
    called = (each.func if isinstance(each, ast.Call) else each for each in kernel.decorator_list)
    return any(meaning_in_kernel(each, scope, aliases) == "triton.jit" for each in called)


@lru_cache(maxsize=64)
def _heuristics(kernel: Kernel) -> str:
    """The code of the calls among the decorators; each argument of each launch is looked up there."""
    return "".join(ast.unparse(each) for each in kernel.decorator_list if isinstance(each, ast.Call))


def reads_one_element(definition: Definition, aliases: Aliases) -> frozenset[str]:
    """The parameters of which a kernel reads at most the first element: the layout of such a tensor does not matter."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return frozenset()
    source, parameters = definition.unit.source, set(parameters_of(definition))
    text = source.lines(record.node.lineno, record.node.end_lineno or record.node.lineno)
    written = Counter(_WORD.findall(text))
    if parameters.isdisjoint(_LOADED.findall(text)) and all(written[each] > 1 for each in parameters):
        return frozenset()
    scope = Scope("function", definition.qualname, record.scope)
    spend(100)
    nodes = nodes_of_kernel(record.node)
    calls = (each for each in nodes if isinstance(each, ast.Call) and len(each.args) == 1 and not each.keywords)
    of_names = (each for each in calls if isinstance(each.args[0], ast.Name))
    loads = [each for each in of_names if meaning_in_kernel(each.func, scope, aliases) == LOAD]
    loaded = {each.args[0] for each in loads}
    used = {each.id for each in nodes if isinstance(each, ast.Name) and each not in loaded}
    return frozenset(parameters - used)


_WORD = pattern(r"\w+")
_LOADED = pattern(r"\bload\(\s*(\w+)\s*\)")


def reads_neighbours(definition: Definition, aliases: Aliases) -> frozenset[str]:
    """The parameters that a kernel of Triton reads with stride 1: ``load(p + row * stride + tl.arange(0, N))``.

    Also one that it reads at ``p + row * stride + 1``.
    """
    loads = [each for each in _accesses(definition, aliases) or () if each.called == LOAD]
    ranged = (each.address.terms for each in loads if STEP in each.address.terms)
    next_to = (each.address.pointer for each in loads if _is_next(each.node.args[0]))
    return frozenset(name for terms in (*ranged, next_to) for name in terms if name is not None and name != STEP)


def _is_next(address: ast.expr) -> bool:
    """Whether an address is the one behind another: ``p + row * stride + 1``."""
    one = isinstance(address, ast.BinOp) and isinstance(address.op, ast.Add) and address.right
    return isinstance(one, ast.Constant) and one.value == 1


def reads_only_first(definition: Definition, aliases: Aliases) -> frozenset[str]:
    """The parameters of which a kernel of Triton certainly reads the first element, and no other."""
    loaded = {each.address.pointer for each in _accesses(definition, aliases) or () if each.called == LOAD}
    return reads_one_element(definition, aliases) & loaded


def always_reads_several(definition: Definition, aliases: Aliases) -> frozenset[str]:
    """The parameters that a kernel of Triton reads in ranges only, whatever flags it is launched with."""
    record = definition.unit.index.functions.get(definition.qualname)
    loads = [each for each in _accesses(definition, aliases) or () if each.called == LOAD]
    ranged = {each.address.pointer for each in loads if STEP in each.address.terms} if record is not None else set()
    always = frozenset(always_compiled(record.node.body)) if record is not None and ranged else frozenset()
    other = {each.address.pointer for each in loads if STEP not in each.address.terms or each.node not in always}
    return frozenset(each for each in ranged - other if each is not None)


def pointers_of(definition: Definition, aliases: Aliases) -> frozenset[str | None]:
    """The parameters that a kernel of Triton adds offsets to, to read or write there; None for an unknown one."""
    accesses = _accesses(definition, aliases)
    return frozenset([None]) if accesses is None else frozenset(each.address.pointer for each in accesses)


def strides_by_pointer(definition: Definition, aliases: Aliases) -> Mapping[str, frozenset[str]]:
    """The parameters that a kernel of Triton multiplies in addresses, by the one that it adds them to.

    ``{"x": {"stride"}}`` for ``load(x + row * stride + tl.arange(0, N))``. None of an address with a name that has
    several values.
    """
    found: dict[str, frozenset[str]] = {}
    for each in _accesses(definition, aliases) or ():
        pointer, factors = each.address.pointer, each.address.factors
        if pointer is not None and UNSURE not in factors:
            found[pointer] = found.get(pointer, frozenset()) | factors
    return found


def blocks_of(definition: Definition, aliases: Aliases, *, unmasked: bool = False) -> KernelBlocks | None:
    """What each program of a kernel of Triton writes; None if it is not known which function that is.

    Or what it stores as whole blocks, perhaps besides others, if ``unmasked``.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return None
    spend(100)
    return (unmasked_in if unmasked else blocks_in)(record.node, record.scope, aliases)


def _accesses(definition: Definition, aliases: Aliases) -> tuple[Access, ...] | None:
    """What a kernel reads and writes; None if it is not known which function that is."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return None
    spend(100)
    return _accesses_through(definition, aliases, {})


def _accesses_through(definition: Definition, aliases: Aliases, known: _Known) -> tuple[Access, ...]:
    """What a function reads and writes, itself and through functions that it hands its parameters on to, each once.

    ``known`` are those of other functions, and nothing for those that lead here.
    """
    key = definition, aliases
    if key in known:
        return known[key]
    known[key] = ()
    kernel = definition.unit.index.functions[definition.qualname]
    found, elsewhere = dict.fromkeys(accesses_in(kernel.node, kernel.scope, aliases)), dict(aliases)
    for call in handed_on_by(kernel.node, kernel.scope, aliases):
        meant = elsewhere.get(call.function)
        called = Definition(definition.unit, call.function.removeprefix(LOCAL)) if meant is None else meant
        record = called.unit.index.functions.get(called.qualname) if isinstance(called, Definition) else None
        if isinstance(called, str) or record is None or not record.certain:
            continue
        given = {**dict(zip(parameter_names(record.node.args), call.positional)), **dict(call.keywords)}
        inside = _accesses_through(called, aliases if meant is None else (), known)
        spend(10 + len(inside))
        found |= dict.fromkeys(within(each, given) for each in inside)
    known[key] = tuple(found)
    return known[key]
