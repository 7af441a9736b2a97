"""Results of a callable of the caller that forward returns, and keeps on ctx: each is an output, or an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.attribute_uses import without_the_data, written_by_backward
from ctxlint.model.analyses.outputs import may_be_given_back
from ctxlint.model.analyses.saved_state_uses import uses_of_kept
from ctxlint.model.analyses.stashes import never_read
from ctxlint.model.interpreter.values import is_input
from ctxlint.torch_api.autograd import FUNCTION_CTX_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextWrite
    from ctxlint.model.interpreter.values import Value


def given_results_on_ctx(fn: FunctionClass) -> Iterator[ContextWrite]:
    """``ctx.y = run(x); return ctx.y`` for an input ``run``, if backward takes one gradient: then it is one tensor.

    Only of an attribute that backward reads and writes to nowhere, or that nothing reads, and that nothing else sets.
    """
    backward = fn.backward
    if fn.forward is None or backward is None or backward.variadic is not None or len(backward.positional) != 1:
        return
    given = [each for each in fn.context_writes if each.value is not None and _is_given(fn, each.value)]
    exempt = written_by_backward(fn) | FUNCTION_CTX_ATTRIBUTES if given and not fn.escapes else None
    marks = [*fn.context_calls("mark_non_differentiable"), *fn.context_calls("mark_dirty")]
    if exempt is None or fn.legacy_state is not None or marks:
        return
    saved = [slot.value for save in fn.saves for slot in save.arguments]
    for write in given:
        name = write.attribute
        alone = len(fn.writes_by_attribute[name]) == 1 and not (write.by or write.in_loop or write.guards)
        kept = write.value.options() if write.value is not None else ()
        returned = {each.value for each in fn.outputs} == {*kept}
        if not alone or not returned or name in exempt or write.value in saved:
            continue
        if uses_of_kept(fn, name, contained=False).of_this_object:  # what is unpacked is another one
            continue
        is_read = any(each.context_attributes.get(name) for each in fn.reading_methods)
        if never_read(fn, write) or (is_read and not without_the_data(backward, name)):
            yield write


def _is_given(fn: FunctionClass, value: Value) -> bool:
    """Whether a value is what a callable of the caller returns, or an input where a loop does not call it."""
    found = [may_be_given_back(fn, option) for option in value.options() if not is_input(option)]
    return bool(found) and all(found)
