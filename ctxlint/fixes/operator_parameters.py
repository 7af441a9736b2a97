"""Renaming the parameters of an operator's ``setup_context`` to the names that torch passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.class_layout import Layout
from ctxlint.fixes.module_code import module_code
from ctxlint.fixes.parameters import (
    Untraceable,
    append_parameters,
    drop_parameter,
    insert_parameter,
    mentions,
    rename_parameter,
)
from ctxlint.model.function import ParameterKind

if TYPE_CHECKING:
    from ctxlint.fix import Edit
    from ctxlint.model.function import Method, Operator, Param, SourceFile

_KEYWORDS = "keyword_only_inputs"
_NAMED = (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)


def rename_as_expected(file: SourceFile, operator: Operator, expected: list[str]) -> Fix | None:
    """Rename the parameters of ``setup_context``; add ``keyword_only_inputs``, or remove an unused parameter.

    None if it is unclear which parameter is which, if a name is taken, and if the function serves operators with and
    without keyword-only parameters.
    """
    setup, code = operator.setup_context, module_code(file)
    if setup is None or code is None or not setup.facts.complete or not _is_plain(file, setup):
        return None
    sharing = [each for each in file.operators if each.setup_context and each.setup_context.node is setup.node]
    if any(bool(each.keyword_only) != bool(operator.keyword_only) for each in sharing):
        return None
    here = sum(each.registered_here for each in sharing)
    alone = code.names.read[setup.node.name.value] == here and not operator.setup_used
    names = [param.name for param in setup.params]
    missing = [name for name in expected if name not in names]
    surplus = [param for param in setup.params if param.name not in expected]
    surplus = [param for param in surplus if param.required] or surplus
    if any(mentions(setup.node.body, name) for name in missing):
        return None
    layout = Layout(file.source, setup.slice)
    if not missing:
        return _dropped(layout, setup, surplus) if alone else None
    if missing == [_KEYWORDS] and not surplus:
        return _added(layout, setup) if alone else None
    return _renamed(layout, setup, expected, missing, surplus, alone=alone)


def _is_plain(file: SourceFile, setup: Method) -> bool:
    """Whether a fix may change the function, and all its parameters can be passed by name."""
    if setup.slice.source is not file.source or not setup.slice.faithful:
        return False
    return not setup.node.params.posonly_params and all(param.kind in _NAMED for param in setup.params)


def _dropped(layout: Layout, setup: Method, surplus: list[Param]) -> Fix | None:
    if len(surplus) != 1 or surplus[0].kind is not ParameterKind.POSITIONAL:
        return None
    (param,) = surplus
    edit = None if mentions(setup.node.body, param.name) else drop_parameter(layout, setup.node, param.node)
    return None if edit is None else Fix(f"Drop `{param.name}`", (edit,), Applicability.SAFE)


def _added(layout: Layout, setup: Method) -> Fix | None:
    at = next(number for number, param in enumerate(setup.params) if param.name == "inputs")
    if at + 1 < len(setup.params):
        after = setup.params[at + 1]
        if after.kind is not ParameterKind.POSITIONAL or setup.params[at].has_default:
            return None
        edit = insert_parameter(layout, setup.node, after.node, _KEYWORDS)
    elif setup.params[at].kind is ParameterKind.POSITIONAL and not setup.params[at].has_default:
        edit = append_parameters(layout, setup.params[at].node, [_KEYWORDS])
    else:
        return None
    return Fix(f"Add `{_KEYWORDS}`", (edit,), Applicability.SAFE)


def _renamed(
    layout: Layout, setup: Method, expected: list[str], missing: list[str], surplus: list[Param], *, alone: bool
) -> Fix | None:
    """Each parameter with a wrong name gets the missing one: the only one, or the one at its position."""
    pairs = list(zip(surplus, missing))
    if len(surplus) != len(missing):
        return None
    if len(pairs) > 1:
        places = {param.name: number for number, param in enumerate(setup.params)}
        if any(expected.index(name) != places[param.name] for param, name in pairs):
            return None
    edits: list[Edit] = []
    try:
        for param, name in pairs:
            edits += rename_parameter(layout, setup.node, param.node, name)
    except Untraceable:
        return None
    # The ctx is identified by its uses; the other two only by their positions.
    others = [name for name in missing if name != "ctx"]
    forced = len(pairs) == 1 or (len(others) == 1 and setup.treats_ctx_as_ctx)
    safe = alone and forced and all(param.required for param in surplus)
    message = " and ".join(f"`{param.name}` to `{name}`" for param, name in pairs)
    return Fix(f"Rename {message}", tuple(sorted(edits)), Applicability.SAFE if safe else Applicability.UNSAFE)
