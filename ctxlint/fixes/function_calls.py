"""Rewriting calls of a Function as ``Fn.apply(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from ctxlint.model.function import ApplyCall, FunctionClass, SourceFile
    from ctxlint.source.source import Source

DOTTED_NAME = pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WITHOUT_ARGUMENTS = pattern(rf"({DOTTED_NAME.pattern})[ \t]*(\([ \t]*\))")
_ATTRIBUTE = pattern(r"\.(forward)\b")


def call_apply(file: SourceFile, fn: FunctionClass, call: ApplyCall) -> Fix | None:
    """Call ``apply`` on the class itself. None if arguments would be lost, are keywords, or are not inputs."""
    place, source = call.callee_span, file.source
    if place is None or call.keywords or call.double_starred:
        return None
    if call.how == "construct" and ("__init__" in fn.methods or not may_be_inputs(fn, call)):
        return None
    start, end = source.offset(place.start), source.offset(place.end)
    if call.how == "construct" and file.instances.made_by(call).wanted:
        return None
    edit = _edit(source.text, call, start, end)
    if edit is None:
        return None
    safe = call.how == "construct-apply" and "__init__" not in fn.methods
    return Fix(f"Call `{fn.name}.apply`", (edit,), Applicability.SAFE if safe else Applicability.UNSAFE)


def may_be_inputs(fn: FunctionClass, call: ApplyCall) -> bool:
    """Whether ``forward`` can take the arguments of the constructor."""
    fewest, most = fn.required_inputs, None if fn.variadic_inputs is not None else len(fn.inputs)
    return call.starred or (fewest <= call.positional and (most is None or call.positional <= most))


def take_apply(source: Source, fn: FunctionClass, call: ApplyCall) -> Fix | None:
    """Read ``apply`` from the class, not an instance: ``Fn.apply`` for ``Fn().apply``. None with an ``__init__``."""
    found = _WITHOUT_ARGUMENTS.fullmatch(source.text, source.offset(call.span.start), source.offset(call.span.end))
    if found is None or "__init__" in fn.methods:
        return None
    return Fix(f"Use `{fn.name}.apply`", (Edit(found.end(1), found.end(), ""),), Applicability.SAFE)


def _edit(text: str, call: ApplyCall, start: int, end: int) -> Edit | None:
    if call.how in ("construct-apply", "construct-call"):
        found = _WITHOUT_ARGUMENTS.fullmatch(text, start, end)
        new = "" if call.how == "construct-apply" else ".apply"
        return None if found is None else Edit(found.end(1), end, new)
    if call.how == "direct":
        found = _ATTRIBUTE.match(text, end)
        return None if found is None else Edit(found.start(1), found.end(1), "apply")
    if call.how == "construct" and (call.positional or call.starred):
        return Edit(end, end, ".apply") if DOTTED_NAME.fullmatch(text, start, end) else None
    return None
