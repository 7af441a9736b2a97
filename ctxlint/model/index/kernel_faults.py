"""What may be wrong in a kernel of Triton, depending on how it is launched."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.index.kernel_bindings import unbound_reads
from ctxlint.model.index.kernel_names import aliases_in, meaning_in_kernel
from ctxlint.model.index.kernel_offsets import narrow_offsets
from ctxlint.model.index.kernel_programs import shared_stores
from ctxlint.model.index.kernel_shapes import misaligned_operands
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.index.kernel_bindings import UnboundUnderFlag
    from ctxlint.model.index.kernel_offsets import NarrowOffset
    from ctxlint.model.index.kernel_programs import SharedStore
    from ctxlint.model.index.kernel_shapes import Misaligned
    from ctxlint.model.index.project import Definition, Project


@record
class KernelFaults:
    """What raises or is wrong in a kernel for some launches.

    ``asked`` are the parameters that decorators test for None to set a flag; ``tuned`` those to which they pass only
    numbers greater than 1.
    """

    unbound: tuple[UnboundUnderFlag, ...] = ()
    shared: tuple[SharedStore, ...] = ()
    misaligned: tuple[Misaligned, ...] = ()
    narrow: tuple[NarrowOffset, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
    tuned: frozenset[str] = frozenset()


def faults_of(project: Project, definition: Definition) -> KernelFaults | None:
    """The possible faults of a kernel; None for none, if no rule asks, or if it is not certain to be one of Triton."""
    worked_out = definition.unit.summaries
    return project.once(("faults", definition.qualname), lambda: _faults_of(project, definition), worked_out)


def _faults_of(project: Project, definition: Definition) -> KernelFaults | None:
    if not is_of_triton(project, definition):
        return None
    spend(200)
    if not project.asks_kernels:
        return None
    defined = definition.unit.index.functions[definition.qualname]
    kernel, scope = defined.node, defined.scope
    aliases = aliases_in(project, definition.unit, definition.qualname)
    unbound = unbound_reads(kernel, scope)
    shared, misaligned = shared_stores(kernel, scope, aliases), misaligned_operands(kernel, scope, aliases)
    narrow = narrow_offsets(kernel, scope, aliases)
    if not (unbound or shared or misaligned or narrow):
        return None
    decorators = [each for each in kernel.decorator_list if isinstance(each, ast.Call)]
    asked = dict(pair for each in decorators for pair in _asked(each))
    return KernelFaults(unbound, shared, misaligned, narrow, asked, _tuned(decorators))


def is_of_triton(project: Project, definition: Definition) -> bool:
    """Whether a function certainly is a kernel of Triton, with no decorators but those of Triton."""
    defined = definition.unit.index.functions.get(definition.qualname)
    if defined is None or not defined.certain:
        return False
    aliases = aliases_in(project, definition.unit, definition.qualname)
    called = [each.func if isinstance(each, ast.Call) else each for each in defined.node.decorator_list]
    names = [meaning_in_kernel(each, defined.scope, aliases) for each in called]
    return names[-1:] == ["triton.jit"] and _TUNING.issuperset(names[:-1])


_TUNING = frozenset(["triton.autotune", "triton.heuristics"])


def _asked(decorator: ast.Call) -> Iterator[tuple[str, str]]:
    """The flags in the table of ``heuristics``, each with the parameter that has to be given."""
    table = next(iter([*decorator.args, *(each.value for each in decorator.keywords if each.arg == "values")]), None)
    for key, value in zip(table.keys, table.values) if isinstance(table, ast.Dict) else ():
        found = _given(value.body) if isinstance(value, ast.Lambda) else ""
        if isinstance(key, ast.Constant) and found:
            yield str(key.value), found


def _given(test: ast.expr) -> str:
    """The parameter ``x`` in ``args["x"] is not None``; empty for anything else."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.IsNot):
        return ""
    right, key = test.comparators[0], test.left.slice if isinstance(test.left, ast.Subscript) else None
    is_none = isinstance(right, ast.Constant) and right.value is None
    return str(key.value) if is_none and isinstance(key, ast.Constant) else ""


def _tuned(decorators: list[ast.Call]) -> frozenset[str]:
    """The parameters for which all configurations that are written out have numbers greater than 1."""
    sizes: dict[str, list[bool]] = {}
    for decorator in decorators:
        nodes = nodes_in(decorator)
        ranges = {
            each.target.id: each.iter
            for each in nodes
            if isinstance(each, ast.comprehension) and isinstance(each.target, ast.Name)
        }
        for config in nodes:
            table = config.args[0] if isinstance(config, ast.Call) and config.args else None
            for key, value in zip(table.keys, table.values) if isinstance(table, ast.Dict) else ():
                if isinstance(key, ast.Constant):
                    among = ranges.get(value.id) if isinstance(value, ast.Name) else None
                    values = among.elts if isinstance(among, (ast.List, ast.Tuple)) else [value]
                    sizes.setdefault(str(key.value), []).append(all(map(_is_several, values)))
    return frozenset(name for name, several in sizes.items() if all(several))


def _is_several(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 1
