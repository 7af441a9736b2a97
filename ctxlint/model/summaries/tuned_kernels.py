"""Kernels of Triton that ``autotune`` runs several times, although each run starts from what the last one left."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.file_answers import answer_about
from ctxlint.model.index.kernel_addresses import nodes_of_kernel
from ctxlint.model.index.kernel_names import aliases_in, meaning_in_kernel
from ctxlint.model.index.kernel_sums import parameters_added_to
from ctxlint.model.index.kernel_transforms import InPlaceTransforms, transforms_in
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve, resolve_certainly
from ctxlint.model.interpreter.values import Argument, Parameter, SavedTensor, Tri, is_tensor
from ctxlint.model.summaries.callables import owner_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.values import Slot


@record
class Trials:
    """What the trials of ``autotune`` do to memory that it neither sets to zero nor restores between runs."""

    sums: frozenset[str] = frozenset()
    """The parameters that the kernel adds to."""
    transforms: InPlaceTransforms = InPlaceTransforms()
    kept: frozenset[str] = frozenset()
    """The parameters that it sets to zero or restores."""
    restores: bool = False
    """Whether it restores any."""

    def added_to(self, passed: Mapping[str, Slot], written: Collection[str]) -> frozenset[str]:
        """The ``written`` parameters to whose memory the kernel only adds, with these arguments."""
        others = [each for each in written if each not in self.sums]
        return frozenset(
            each for each in self.sums if each in written and not any(_share(passed, each, other) for other in others)
        )

    def transformed(self, passed: Mapping[str, Slot], written: Collection[str]) -> frozenset[str]:
        """The ``written`` parameters that get what the kernel computes from the same memory, with these arguments.

        Once one of them is certainly another value after each run, it is all of them that ``autotune`` has to restore.
        """
        kept = {each for each in passed if any(_share(passed, each, other) for other in self.kept)}
        stored = [each for each in passed if each in self.transforms.stored and each in written and each not in kept]
        if not any(other in stored and _share(passed, one, other) for one, other in self.transforms.pairs):
            return frozenset()
        loaded = self.transforms.loaded
        return frozenset(each for each in stored if any(_share(passed, one, each) for one in loaded))


def _share(passed: Mapping[str, Slot], one: str, other: str) -> bool:
    """Whether two parameters, or one, certainly get the same memory."""
    if one == other or one not in passed or other not in passed:
        return one == other
    value = passed[one].value
    known = is_tensor(value) is Tri.YES or isinstance(value, (Argument, Parameter, SavedTensor))
    return known and value == passed[other].value


def trials_of(project: Project, definition: Definition) -> Trials | None:
    """What each trial of a kernel under ``autotune`` repeats; None for nothing."""
    defined = definition.unit.index.functions.get(definition.qualname)
    if defined is None or len(defined.node.decorator_list) < 2:
        return None
    worked_out = definition.unit.summaries
    return project.once(("trials", definition.qualname), lambda: _trials_of(project, definition), worked_out)


def _trials_of(project: Project, definition: Definition) -> Trials | None:
    defined = definition.unit.index.functions[definition.qualname]
    aliases = aliases_in(project, definition.unit, definition.qualname)
    calls = [each for each in defined.node.decorator_list if isinstance(each, ast.Call)]
    tuning = [each for each in calls if meaning_in_kernel(each.func, defined.scope, aliases) in _TUNERS]
    between = _kept_between_runs(project, definition.unit, tuning[0], defined.scope) if len(tuning) == 1 else None
    if between is None:
        return None
    kept = frozenset.union(*between)
    sums = parameters_added_to(defined.node, defined.scope, aliases) - kept
    transforms = transforms_in(defined.node, defined.scope, aliases)
    return Trials(sums, transforms, kept, bool(between[1])) if sums or transforms.pairs else None


def added_to_by(project: Project, definition: Definition) -> frozenset[str]:
    """The parameters that a kernel only adds to, atomically; none under a decorator that may set any of them."""
    defined = definition.unit.index.functions.get(definition.qualname)
    if defined is None or len(defined.node.decorator_list) != 1 or not _mentions_additions(defined.node):
        return frozenset()
    aliases = aliases_in(project, definition.unit, definition.qualname)
    return parameters_added_to(defined.node, defined.scope, aliases)


@lru_cache(maxsize=64)
def _mentions_additions(kernel: Kernel) -> bool:
    attributes = [each.attr for each in nodes_of_kernel(kernel) if type(each) is ast.Attribute]  # the fastest test
    return "atomic_add" in attributes


def _kept_between_runs(project: Project, unit: Unit, tuning: ast.Call, scope: Scope) -> list[frozenset[str]] | None:
    """The parameters that ``autotune(...)`` sets to zero, and restores; None if it may not try any configuration."""
    if len(tuning.args) > len(_BY_POSITION):
        return None
    given = {each.arg or "": each.value for each in tuning.keywords} | dict(zip(_BY_POSITION, tuning.args))
    if not _KNOWN.issuperset(given) or not _are_several(project, unit, given.get("configs"), scope):
        return None
    kept = [_listed(given.get(each)) for each in ("reset_to_zero", "restore_value")]
    known = [each for each in kept if each is not None]
    return known if len(known) == len(kept) else None


def _listed(names: ast.expr | None) -> frozenset[str] | None:
    """The strings in a list; None for anything else that is written."""
    if names is None or (isinstance(names, ast.Constant) and names.value is None):
        return frozenset()
    if not isinstance(names, (ast.List, ast.Tuple)):
        return None
    constants = [each for each in names.elts if isinstance(each, ast.Constant)]
    return frozenset(str(each.value) for each in constants) if len(constants) == len(names.elts) else None


_TUNERS = ("triton.autotune", "triton.runtime.autotuner.autotune")
_BY_POSITION = ("configs", "key")
_KNOWN = frozenset(
    str.split("configs key reset_to_zero restore_value warmup rep use_cuda_graph do_bench cache_results")
)
"""The parameters of ``autotune`` that leave the memory between two runs as it is, but for those named."""


def _are_several(project: Project, unit: Unit, node: ast.expr | None, scope: Scope) -> bool:
    """Whether an expression certainly is a list of two configurations or more, none of which has a hook."""
    unit, node, scope = _bound(project, unit, node, scope)
    if isinstance(node, ast.Call):
        unit, node, scope = _returned_by(project, unit, node, scope)
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) > 1 and all(_is_plain_config(each, scope) for each in node.elts)
    if isinstance(node, ast.ListComp) and _is_plain_config(node.elt, scope):
        lists = [_bound(project, unit, each.iter, scope)[1] for each in node.generators]
        lengths = [_shortest(each) for each in lists]
        return not any(each.ifs for each in node.generators) and all(lengths) and max(lengths) > 1
    return False


def _returned_by(project: Project, unit: Unit, call: ast.Call, scope: Scope) -> tuple[Unit, ast.expr | None, Scope]:
    """What a call without arguments certainly returns, of a function that does nothing else; and where that is."""
    written = dotted_name(call.func)
    name = resolve_certainly(written, scope) if written is not None and not (call.args or call.keywords) else None
    if name is None or name.startswith(("builtins.", "torch.", "triton.")):
        return unit, None, scope
    found = Definition(unit, name[len(LOCAL) :]) if name.startswith(LOCAL) else project.certainly(unit, name)
    defined = found.unit.index.functions.get(found.qualname) if found is not None else None
    if found is None or defined is None or not defined.certain or "." in found.qualname:
        return unit, None, scope
    statements = defined.node.body[bool(ast.get_docstring(defined.node)) :]
    only = statements[0] if len(statements) == 1 and not defined.node.decorator_list else None
    return found.unit, only.value if isinstance(only, ast.Return) else None, defined.scope


def _is_plain_config(node: ast.expr, scope: Scope) -> bool:
    """Whether it is ``triton.Config(...)`` without a hook that may clear memory."""
    if not isinstance(node, ast.Call) or len(node.args) > _MOST_ARGUMENTS:
        return False
    return resolve(dotted_name(node.func) or "", scope) in _CONFIGS and not any(
        each.arg in (None, "pre_hook") for each in node.keywords
    )


_CONFIGS = ("triton.Config", "triton.runtime.Config", "triton.runtime.autotuner.Config")
_MOST_ARGUMENTS = 3
"""The number of arguments of ``Config`` before ``pre_hook`` in all releases."""


def _shortest(node: ast.expr | None) -> int:
    """The number of elements that a list certainly has; 1 for a range, which authors write to be run through."""
    if isinstance(node, ast.Call):
        return int(dotted_name(node.func) == "range")
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    return sum(not isinstance(each, ast.Starred) for each in elements)


def _bound(project: Project, unit: Unit, node: ast.expr | None, scope: Scope) -> tuple[Unit, ast.expr | None, Scope]:
    """What a name is certainly bound to in a module, this one or another, and where; any other expression itself."""
    if not isinstance(node, ast.Name):
        return unit, node, scope
    owner = scope.owner(node.id)
    own = owner is not None and owner.kind == "module" and owner.names[node.id][-1].kind == "assign"
    name = LOCAL + node.id if own else resolve(node.id, scope)
    found = owner_of(project, unit, name) if name else None
    bounds = found[3].names.get(found[2], ()) if found is not None else ()
    if found is None or found[1] or len(bounds) != 1 or bounds[0].kind != "assign" or bounds[0].conditional:
        return unit, None, scope
    if not (answer_about(unit, ("passes", node.id)) and answer_about(found[0], ("passes", found[2]))):
        return unit, None, scope
    if found[0] is not unit and project.ask("fills", found[0].path, found[2]) in project.changed:
        return unit, None, scope
    return found[0], bounds[0].value, found[3]
