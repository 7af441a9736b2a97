"""Is this input of forward a tensor? The evidence for and against, and the verdict.

In the order of strength that real code suggests: its own gradient slot, literals at calls of the class, exact
annotations and uses that only a tensor (or only a plain value) allows, default values, and last how it is stored on
ctx.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_names import named_input
from ctxlint.model.function import (
    ApplyCall,
    ArgumentKind,
    Evidence,
    Input,
    InputKind,
    Param,
    Returned,
    Trust,
)
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.statements import sounds_final
from ctxlint.model.interpreter.values import Constant, Opaque, Tri, before_star, is_none, is_tensor
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.interpreter.values import Value


# ---------------------------------------------------------------------------------------------------------------------
# The verdict


def decide(evidence: Iterable[Evidence], optional: bool) -> InputKind:
    """The kind of an input according to the evidence. Two strong pieces that contradict each other leave it unknown."""
    strong = {each.tensor for each in evidence if each.trust in (Trust.PROOF, Trust.STRONG)}
    fair = {each.tensor for each in evidence if each.trust is Trust.FAIR}
    verdict = strong or fair
    if len(verdict) != 1:
        return InputKind.UNKNOWN
    if not verdict.pop():
        return InputKind.NON_TENSOR
    return InputKind.OPTIONAL_TENSOR if optional else InputKind.TENSOR


def describe(
    index: int,
    param: Param,
    gradients: Sequence[Returned],
    required: int,
    evidence: Iterable[Evidence],
    may_be_none: Iterable[Evidence] = (),
    *,
    alone: bool = False,
    refused: bool = False,
) -> Input:
    """The input number ``index``, from what backward returns (``gradients``) and all other evidence.

    ``required`` is the number of inputs that backward must return a gradient for: those without a default unless
    ``inputs_covered`` overrides that. ``may_be_none`` is the evidence for None from its uses and calls. ``alone``: it
    is the only input, so the result of whatever backward calls belongs to it. ``refused``: forward, or what it calls,
    raises unless it is None, so that nobody wants the gradient.
    """
    gradient = gradient_of(index, required, gradients)
    of_calls = alone and gradient is Tri.UNKNOWN and any(map(given_by_a_call, gradients))
    gradient = Tri.YES if of_calls else gradient
    collected = [*evidence, *from_signature(param)]
    values = slot_values(index, gradients)
    if gradient is Tri.YES and (of_calls or any(is_tensor(value) is not Tri.NO for value in values)):
        node = slot_node(index, gradients) or gradients[0].node
        collected.append(Evidence(True, Trust.PROOF, "`backward` returns a gradient for it", node, own_gradient=True))
    elif gradient is Tri.NO and index < max((len(each.slots) for each in gradients), default=0):
        # Tensors that need no gradient get None as well.
        collected.append(Evidence(False, Trust.HINT, "`backward` returns `None` for it", slot_node(index, gradients)))
    if refused:
        collected.append(Evidence(False, Trust.HINT, "anything but `None` is refused", param.node))
        gradient = Tri.UNKNOWN if gradient is Tri.YES else gradient
    ordered = tuple(sorted(collected, key=lambda each: -each.trust.value))
    absent = (*none_from_signature(param), *may_be_none)
    kind = InputKind.UNKNOWN if refused else decide(ordered, bool(absent))
    return Input(index, param.name, param, kind, ordered, gradient, absent, refused)


def given_by_a_call(returned: Returned) -> bool:
    """Whether backward returns the result of an unknown function."""
    node = returned.value.node if isinstance(returned.value, Opaque) else None
    return isinstance(node, cst.Call) and bool(node.args) and not sounds_final(node.func)


def slot_values(index: int, gradients: Sequence[Returned]) -> Iterator[Value]:
    """What the returns of backward have for input ``index``, except None."""
    for returned in gradients:
        slots = before_star(returned.slots)
        if index < len(slots):
            yield from (option for option in slots[index].value.options() if is_none(option) is not Tri.YES)


def slot_node(index: int, gradients: Sequence[Returned]) -> cst.CSTNode | None:
    """The first expression in a return of backward for input ``index``; preferably one other than None."""
    found = [
        (is_none(returned.slots[index].value) is Tri.YES, at, returned)
        for at, returned in enumerate(gradients)
        if index < len(returned.slots) and not any(slot.starred for slot in returned.slots[: index + 1])
    ]
    if not found:
        return None
    returned = min(found, key=lambda each: each[:2])[2]
    return returned.slots[index].node or returned.node


def gradient_of(index: int, required: int, gradients: Sequence[Returned]) -> Tri:
    """Does backward return something other than None for input ``index``, on some path?

    Unknown if a return has too few gradients for its positions to be meaningful, or an unknown number before it.
    """
    answers: set[Tri] = set()
    for returned in gradients:
        answers.add(_slot_answer(index, required, returned))
    if Tri.YES in answers:
        return Tri.YES
    return Tri.NO if answers == {Tri.NO} else Tri.UNKNOWN


def inputs_covered(inputs: Sequence[Input], required: int, gradients: Sequence[Returned]) -> int:
    """How many inputs the gradients of backward are for: fewer than ``required`` if only ``None`` is left out.

    That is the case if the last inputs, for which it returns nothing, are certainly not tensors, it returns None for
    the others that are not tensors, and no gradient has the name of another input. Then each is in the right position.
    """
    counts = {len(each.slots) if each.known and each.exact else required for each in gradients}
    count = counts.pop() if len(counts) == 1 else required
    if count >= required or any(each.kind is not InputKind.NON_TENSOR for each in inputs[count:]):
        return required
    others = [each.index for each in inputs[:count] if each.kind is InputKind.NON_TENSOR]
    fits = all(is_none(returned.slots[index].value) is Tri.YES for returned in gradients for index in others)
    return count if fits and not any(_names_another(each, inputs) for each in gradients) else required


def _names_another(returned: Returned, inputs: Sequence[Input]) -> bool:
    """Whether a gradient, according to its name, is for another input than the one at its position."""
    names = (named_input(slot.node, inputs) for slot in returned.slots)
    return any(meant not in (None, index) for index, meant in enumerate(names))


def _slot_answer(index: int, required: int, returned: Returned) -> Tri:
    if not returned.known:
        return Tri.UNKNOWN
    if returned.exact and len(returned.slots) < required:
        return Tri.UNKNOWN
    for position, slot in enumerate(returned.slots):
        if slot.starred:
            return Tri.UNKNOWN
        if position == index:
            return Tri.NO if is_none(slot.value) is Tri.YES else Tri.YES
    return Tri.NO


# ---------------------------------------------------------------------------------------------------------------------
# The signature


def from_signature(param: Param) -> list[Evidence]:
    """Evidence from the annotation and the default of a parameter."""
    found: list[Evidence] = []
    annotation = param.annotation
    if annotation is not None:
        by_annotation = _from_annotation(annotation, param)
        if by_annotation is not None:
            found.append(by_annotation)
    default = param.default
    stretched = annotation is None or [each for each in types_allowed_by(annotation) if each != "None"] == [
        "builtins.float"
    ]
    if isinstance(default, Constant) and default.value is not None and stretched:
        kind = default.type_name
        trust = Trust.STRONG if kind in ("bool", "str") else Trust.FAIR
        if annotation is not None:  # `scale: float = 1.0`: the default confirms what people write for tensors, too
            found = [replace(each, trust=Trust.STRONG) for each in found]
        found.append(Evidence(False, trust, f"its default is `{default.value!r}`", param.node))
    return found


def _from_annotation(annotation: str, param: Param) -> Evidence | None:
    """Evidence from an annotation; of several alternatives, only what they agree on."""
    kinds = [each for each in types_allowed_by(annotation) if each != "None"]
    judged = [_judge(each) for each in kinds]
    tensor = judged[0][0] if judged else None
    if tensor is None or any(each is not tensor for each, _ in judged):
        return None
    trust = min((trust for _, trust in judged), key=lambda each: each.value)
    container = all(each.partition("[")[0] in types.CONTAINER_ANNOTATIONS for each in kinds)
    reason = f"it is annotated `{_short(annotation)}`" + (", a container" if container else "")
    holding = container and any(map(_may_hold_tensors, kinds))
    return Evidence(tensor, trust, reason, param.node, container=holding, annotated=True)


def _may_hold_tensors(annotation: str) -> bool:
    """Whether a container of this type may contain tensors."""
    inside = [each for each in _split(annotation.partition("[")[2].rstrip("]"), ",") if each not in ("", "...")]
    return not inside or any(
        _judge(each)[0] is not False or ("[" in each and _may_hold_tensors(each)) for each in inside
    )


def _judge(annotation: str) -> tuple[bool | None, Trust]:
    head = annotation.partition("[")[0]
    if annotation in types.TENSOR_ANNOTATIONS:
        return True, Trust.STRONG
    if annotation == "builtins.float":  # authors also write it for tensors of one element
        return False, Trust.FAIR
    plain = annotation in types.NON_TENSOR_ANNOTATIONS or head in types.NON_TENSOR_ANNOTATIONS
    return (False, Trust.STRONG) if plain or head in types.CONTAINER_ANNOTATIONS else (None, Trust.HINT)


def types_allowed_by(annotation: str) -> list[str]:
    """The types that an annotation allows: those in ``Optional``, ``Union`` and ``|``."""
    parts = _split(annotation, "|")
    if len(parts) > 1:
        return [each for part in parts for each in types_allowed_by(part)]
    head, _, inner = annotation.partition("[")
    if not inner.endswith("]") or head not in ("typing.Optional", "typing.Union"):
        return [annotation]
    found = [each for part in _split(inner[:-1], ",") for each in types_allowed_by(part)]
    return [*found, "None"] if head == "typing.Optional" else found


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _short(annotation: str) -> str:
    for prefix in (LOCAL, "builtins.", "typing.", "torch.nn.parameter.", "torch.nn.", "torch."):
        annotation = annotation.replace(prefix, "")
    return annotation


def none_from_signature(param: Param) -> list[Evidence]:
    """Evidence from the annotation and the default of a parameter that it may be None."""
    found: list[Evidence] = []
    annotation = param.annotation or ""
    if "None" in annotation or "Optional" in annotation:
        reason = f"it is annotated `{_short(annotation)}`"
        found.append(Evidence(False, Trust.STRONG, reason, param.node, annotated=True))
    if isinstance(param.default, Constant) and param.default.value is None:
        found.append(Evidence(False, Trust.STRONG, "its default is `None`", param.node))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# The calls


def none_from_calls(index: int, calls: Iterable[ApplyCall]) -> list[Evidence]:
    """The known calls of the class that pass None at this position."""
    return [
        Evidence(False, Trust.STRONG, f"{call.place} passes `None`", call=None if call.path else call.span)
        for call in calls
        if call.applies and not call.expects_error
        if index < len(call.arguments) and call.arguments[index] is ArgumentKind.NONE
    ]


def passes_no_tensor(call: ApplyCall) -> bool:
    """Whether none of the arguments of a call certainly is a tensor: torch then records nothing, and saves nothing."""
    own = call.names.index("self") if call.in_module and "self" in call.names else -1
    kinds = [kind for at, kind in enumerate(call.arguments) if at != own]
    known = not (call.starred or call.double_starred or call.keywords or call.relayed)
    return known and not {ArgumentKind.TENSOR, ArgumentKind.OTHER}.intersection(kinds)


def from_calls(index: int, calls: Iterable[ApplyCall]) -> list[Evidence]:
    """What the known calls of the class pass at this position."""
    found: list[Evidence] = []
    for call in calls:
        if not call.applies or index >= len(call.arguments) or call.expects_error:
            continue
        kind, here = call.arguments[index], None if call.path else call.span
        if kind in (ArgumentKind.NUMBER, ArgumentKind.STRING, ArgumentKind.BOOL):
            found.append(Evidence(False, Trust.PROOF, f"{call.place} passes a {kind.value}", call=here))
        elif kind in (ArgumentKind.FLAG, ArgumentKind.OPTION, ArgumentKind.TUPLE):
            reason = f"{call.place} passes the {kind.value} `{call.names[index]}`"
            found.append(Evidence(False, Trust.STRONG, reason, call=here, by_default=True))
        elif kind in (ArgumentKind.CONTAINER, ArgumentKind.TENSORS):
            found.append(Evidence(False, Trust.STRONG, f"{call.place} passes a container", call=here, container=True))
        elif kind is ArgumentKind.PLAIN_CONTAINER:
            found.append(Evidence(False, Trust.STRONG, f"{call.place} passes a container", call=here))
        elif kind is ArgumentKind.TENSOR:
            found.append(Evidence(True, Trust.STRONG, f"{call.place} passes a tensor", call=here))
    return found
