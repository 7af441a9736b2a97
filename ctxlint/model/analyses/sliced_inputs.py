"""Inputs of which forward takes a ``view`` that is impossible for what a call in view passes, as ``x[:, 1:, :]``.

Or that it asserts to be contiguous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.layout_uses import is_asserted, keeps_arguments
from ctxlint.model.interpreter.summary import ASSERTED
from ctxlint.model.syntax import code_of, keywords_of, signed_integer, single_index
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import ApplyCall, FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class SlicedInput:
    """``x.view(-1)`` or ``x.view(-1, x.shape[-1])``, and the ``call`` that passes a part of a tensor, ``passed``.

    Or ``x.is_contiguous()`` in an assertion.
    """

    node: cst.Call
    call: ApplyCall
    passed: str
    asserted: bool


def sliced_inputs(fn: FunctionClass) -> Iterator[SlicedInput]:
    """The views in forward that merge a dimension of which a call passes a part with the first one; one an input.

    And the assertions that such an input is contiguous.
    """
    passed = {
        at: (call, dimension, named, code)
        for call in reversed(fn.calls)
        if call.applies and not call.expects_error
        for at, dimension, named, code in call.sliced
    }
    forward = fn.forward
    if not passed or forward is None or not fn.signature_judgeable or not keeps_arguments(forward):
        return
    for at, (call, dimension, named, code) in sorted(passed.items()):
        name = fn.inputs[at].name if at < len(fn.inputs) else ""
        for use in forward.named.get(name, ()):
            asked, method = forward.called_on(use)
            if asked is None or method not in ("view", ASSERTED) or not forward.holds_argument(name, use):
                continue
            if method == ASSERTED:
                statement = forward.around(asked, cst.Assert)
                fails = statement is not None and is_asserted(forward, asked)
                if statement is None or not fails or runs(forward, statement) is not Runs.ALWAYS:
                    continue
            else:
                kept = _kept_dimensions(forward, asked, name)
                if kept is None or dimension >= named - kept or runs(forward, asked) is not Runs.ALWAYS:
                    continue
            yield SlicedInput(asked, call, code, method == ASSERTED)
            break


def _kept_dimensions(forward: Method, view: cst.Call, name: str) -> int | None:
    """How many of the last dimensions a view keeps while it merges all others: none or one; None for any other view."""
    sizes = [each.value for each in view.args]
    if not sizes or len(sizes) > 2 or keywords_of(view) or signed_integer(sizes[0]) != -1:
        return None
    return len(sizes) - 1 if all(_is_last_size(forward, each, name) for each in sizes[1:]) else None


def _is_last_size(forward: Method, node: cst.BaseExpression, name: str) -> bool:
    """Whether an expression is the last size of an input: ``x.shape[-1]``, ``x.size(-1)``, or a name for it."""
    node = forward.behind_name(node) or node
    if isinstance(node, cst.Subscript):
        return code_of(node.value) == f"{name}.shape" and signed_integer(single_index(node)) == -1
    return isinstance(node, cst.Call) and code_of(node).replace(" ", "") == f"{name}.size(-1)"
