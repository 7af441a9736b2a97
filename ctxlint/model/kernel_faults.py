"""What is wrong in the kernels of Triton that a file defines and launches."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.effort import spend
from ctxlint.model.function import KernelFault, KernelFaultKind
from ctxlint.model.index.kernel_addresses import nodes_of_kernel
from ctxlint.model.index.kernel_bindings import flags_tested, unbound_reads
from ctxlint.model.index.kernel_names import meaning_in_kernel
from ctxlint.model.index.kernel_programs import shared_stores
from ctxlint.model.index.kernel_shapes import misaligned_operands
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, resolve_certainly
from ctxlint.source.ast_tree import defaults_of, nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.module_unit import Unit


def kernel_faults(unit: Unit) -> Iterator[KernelFault]:
    """The faults in the kernels of a file that it launches itself."""
    functions = unit.index.functions
    kernels = {name: each for name, each in functions.items() if each.certain and _is_kernel(each)}
    launched = _launches(unit, kernels) if kernels else {}
    optional = _optional(unit, kernels) if launched else frozenset()
    for name, launches in launched.items():
        spend(100)
        yield from _faults(unit, name, kernels[name], launches, optional)


def _is_kernel(record: FunctionRecord) -> bool:
    """Whether a function is under ``triton.jit``, and nothing but what tunes it."""
    called = [each.func if isinstance(each, ast.Call) else each for each in record.node.decorator_list]
    names = [meaning_in_kernel(each, record.scope, ()) for each in called]
    return names[-1:] == ["triton.jit"] and all(each in _TUNING for each in names[:-1])


_TUNING = ("triton.autotune", "triton.heuristics")


class _Launch(NamedTuple):
    """``kernel[grid](...)``, in a function, with the arguments by parameter."""

    grid: ast.expr
    given: Mapping[str, ast.expr]
    assigned: Mapping[str, Sequence[ast.expr]]
    """What the function assigns to names."""

    def value(self, node: ast.expr) -> ast.expr:
        """What an expression is: for a name, what it is assigned, if that is one thing only."""
        found = self.assigned.get(node.id, ()) if isinstance(node, ast.Name) else ()
        return found[0] if len(found) == 1 else node


def _launches(unit: Unit, kernels: Mapping[str, FunctionRecord]) -> dict[str, list[_Launch]]:
    """The launches of kernels in the functions of a file, by the kernel."""
    found: dict[str, list[_Launch]] = {}
    for qualname, record in unit.index.functions.items():
        if qualname in kernels:
            continue
        nodes = [node for statement in record.node.body for node in nodes_in(statement)]
        calls = [each for each in nodes if isinstance(each, ast.Call) and isinstance(each.func, ast.Subscript)]
        scope = Scope("function", qualname, record.scope) if calls else record.scope
        assigned = _assigned(nodes) if calls else {}
        for call in calls:
            launcher = call.func
            name = resolve_certainly(dotted_name(getattr(launcher, "value", launcher)) or "", scope) or ""
            kernel = kernels.get(name.removeprefix(LOCAL)) if name.startswith(LOCAL) else None
            if kernel is None or any(isinstance(each, ast.Starred) for each in call.args):
                continue
            given = dict(zip(parameter_names(kernel.node.args), call.args))
            given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
            launch = _Launch(getattr(launcher, "slice", launcher), given, assigned)
            found.setdefault(name.removeprefix(LOCAL), []).append(launch)
    return found


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for each in nodes:
        if isinstance(each, ast.Assign):
            for target in each.targets:
                for name in nodes_in(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(each.value if target is name else name)
    return found


def _faults(
    unit: Unit, name: str, record: FunctionRecord, launches: Sequence[_Launch], optional: frozenset[str]
) -> Iterator[KernelFault]:
    """The faults of one kernel; ``optional`` are the arguments that are known to be None in some calls."""
    kernel, last = record.node, name.rpartition(".")[2]
    span = unit.source.span_of
    for flag in sorted(flags_tested(kernel)):
        for value in (False, True):
            asked = _asked(record, flag, value, launches)
            when = f"with `{flag}={value}`" if asked is None else f"if `{asked}` is `None`" if asked in optional else ""
            for read in unbound_reads(kernel, flag, value) if when else ():
                if record.scope.owner(read.name.id) is None:
                    code = f"{'not ' * value}{flag}"
                    yield KernelFault(KernelFaultKind.UNBOUND, span(read.name), last, read.name.id, code, when)
    if any(_may_have_several(kernel, each) for each in launches):
        for store in shared_stores(kernel, record.scope, ()):
            others = next(iter(store.moved), "")
            yield KernelFault(KernelFaultKind.SHARED, span(store.node), last, store.pointer, others)
    for each in misaligned_operands(kernel, record.scope, ()):
        vector, block = ast.unparse(each.vector), ast.unparse(each.block)
        kind = KernelFaultKind.MISALIGNED
        yield KernelFault(kind, span(each.vector), last, vector, block, sizes=(each.rows, each.columns))


def _asked(record: FunctionRecord, flag: str, value: bool, launches: Sequence[_Launch]) -> str | None:
    """The argument whose absence gives a flag this value in a launch; None if one passes the value itself, else empty.

    ``HAS_BIAS=bias is not None``, or the same in the heuristics of the kernel.
    """
    for decorator in record.node.decorator_list:
        table = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
        for key, found in zip(table.keys, table.values) if isinstance(table, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value == flag and isinstance(found, ast.Lambda):
                asked = "" if value else _given(found.body)
                names = [dotted_name(each.given[asked]) for each in launches if asked in each.given]
                return names[0] or "" if names else ""
    values = [each.value(each.given[flag]) for each in launches if flag in each.given]
    if any(isinstance(each, ast.Constant) and each.value is value for each in values):
        return None
    return "" if value else next((asked for each in values if (asked := _given(each))), "")


def _given(test: ast.expr) -> str:
    """What a test finds present: ``x`` in ``x is not None``, also in ``args["x"] is not None``."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.IsNot):
        return ""
    if not isinstance(test.comparators[0], ast.Constant) or test.comparators[0].value is not None:
        return ""
    key = test.left.slice if isinstance(test.left, ast.Subscript) else None
    return str(key.value) if isinstance(key, ast.Constant) else dotted_name(test.left) or ""


def _optional(unit: Unit, kernels: Mapping[str, FunctionRecord]) -> frozenset[str]:
    """The parameters of the functions of a file that are None by default."""
    found = set[str]()
    for name, record in unit.index.functions.items():
        defaults = defaults_of(record.node.args) if name not in kernels else {}
        found |= {each for each, value in defaults.items() if isinstance(value, ast.Constant) and value.value is None}
    return frozenset(found)


def _may_have_several(kernel: ast.FunctionDef | ast.AsyncFunctionDef, launch: _Launch) -> bool:
    """Whether the grid of a launch is written out, and may have more than one program along an axis that matters."""
    grid = launch.value(launch.grid)
    grid = grid.body if isinstance(grid, ast.Lambda) else grid
    if not isinstance(grid, (ast.Tuple, ast.List)):
        return False
    calls = (each for each in nodes_of_kernel(kernel) if isinstance(each, ast.Call))
    asked = [each for each in calls if getattr(each.func, "attr", "") == "program_id"]
    axes = [
        each.value
        for call in asked
        for each in (*call.args, *(key.value for key in call.keywords))
        if isinstance(each, ast.Constant)
    ]
    used = [grid.elts[at] for at in axes if isinstance(at, int) and at < len(grid.elts)]
    return any(not (isinstance(each, ast.Constant) and each.value == 1) for each in map(launch.value, used))
