"""From the model of a Function to its contract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.explain.context_state_rows import attribute_rows, save_rows
from ctxlint.explain.contract_rows import Contract, InputRow, MethodRow, Reason
from ctxlint.explain.gradient_rows import gradients_for, positions_certain, return_rows
from ctxlint.explain.locations import parameters_of, place_in, place_of
from ctxlint.explain.output_rows import output_rows, outputs_known
from ctxlint.explain.unknowns import notes_of
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.explain.contract_rows import GuardRow, ReturnRow
    from ctxlint.model.function import Evidence, FunctionClass, Input, SourceFile
    from ctxlint.model.interpreter.method import Method

_SECOND_OF_A_NAME = pattern(r"@\d+")
"""How the model distinguishes two classes with the same name: by their lines."""


def contracts_of(file: SourceFile) -> tuple[Contract, ...]:
    """The contract of every Function of a file, in source order."""
    return _contracts(file.functions)


def contracts_at(file: SourceFile, first: int, last: int) -> tuple[Contract, ...]:
    """The contracts with code on the lines from ``first`` to ``last`` of a file, in source order.

    An editor asks for a few lines after each keystroke, and a file may define many Functions.
    """
    return _contracts(fn for fn in file.functions if _has_code_on(fn, file.source.path, first, last))


def _contracts(functions: Iterable[FunctionClass]) -> tuple[Contract, ...]:
    return tuple(sorted(map(contract_of, functions), key=lambda each: each.place.span.start))


def _has_code_on(fn: FunctionClass, path: str, first: int, last: int) -> bool:
    slices = (fn.slice, *(method.slice for method in fn.methods.values()))
    return any(each.source.path == path and each.first_line <= last and first <= each.last_line for each in slices)


def contract_of(fn: FunctionClass) -> Contract:
    """The contract of one Function; cached because an editor asks about many places of a text."""
    if contract_of not in fn.lasting_notes:
        fn.lasting_notes[contract_of] = _contract(fn)
    found: Contract = fn.lasting_notes[contract_of]
    return found


def _contract(fn: FunctionClass) -> Contract:
    returns = return_rows(fn)
    return Contract(
        name=fn.name,
        qualname=_SECOND_OF_A_NAME.sub("", fn.qualname),
        style=fn.style.value,
        place=place_in(fn.source, fn.slice.span(fn.node.name)),
        body=fn.slice.span(fn.node),
        methods=tuple(_method_row(fn, fn.methods[name]) for name in _SHOWN if name in fn.methods),
        inputs=tuple(_input_rows(fn, returns)),
        outputs=tuple(output_rows(fn)),
        outputs_known=outputs_known(fn),
        returns=returns,
        positions_known=positions_certain(fn),
        saves=tuple(save_rows(fn)),
        attributes=tuple(attribute_rows(fn)),
        notes=tuple(dict.fromkeys(notes_of(fn))),
    )


_SHOWN = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")


def _method_row(fn: FunctionClass, method: Method) -> MethodRow:
    return MethodRow(method.name, parameters_of(fn, method), place_of(fn, method.node.name), inherited=method.inherited)


# Inputs


def _input_rows(fn: FunctionClass, returns: tuple[ReturnRow, ...]) -> Iterator[InputRow]:
    for entry in fn.inputs:
        gradients = gradients_for(entry.index, returns)
        yield InputRow(
            position=entry.index,
            name=entry.name,
            kind=entry.kind.value,
            evidence=_reasons(fn, entry),
            gradients=gradients,
            guards=_common_guards([each.slot.guards for each in gradients if each.slot and each.slot.none != "yes"]),
            required=entry.required,
            variadic=False,
            place=place_of(fn, entry.param.node.name),
        )
    if fn.variadic_inputs is not None:
        at = len(fn.inputs)
        yield InputRow(
            position=at,
            name=fn.variadic_inputs.name,
            kind="unknown",
            evidence=(),
            gradients=gradients_for(at, returns, variadic=True),
            guards=(),
            required=False,
            variadic=True,
            place=place_of(fn, fn.variadic_inputs.node.name),
        )


def _common_guards(guards: list[tuple[GuardRow, ...]]) -> tuple[GuardRow, ...]:
    """The guards of all gradients of an input; none if one of them has none, because it depends on no flag."""
    if not guards or not all(guards):
        return ()
    return tuple({(each.text, each.input): each for found in guards for each in found}.values())


def _reasons(fn: FunctionClass, entry: Input) -> tuple[Reason, ...]:
    """The evidence for the kind of an input, strongest first, without duplicates."""
    reasons = [_reason(fn, each, each.tensor) for each in entry.evidence]
    reasons += [_reason(fn, each, None) for each in entry.may_be_none]
    found: dict[str, Reason] = {}
    for each in reasons:
        same = found.setdefault(each.text, each)
        if each.tensor is not same.tensor and None not in (each.tensor, same.tensor):
            found[each.text] = replace(same, tensor=None)  # it tests the type, and is not evidence
    for text in [each for each, reason in found.items() if reason.tensor is None]:
        if any(other.startswith(text) and other != text for other in found):
            del found[text]  # the same annotation
    for text in [each for each in found if each.endswith("` is read")]:
        if text.replace("` is read", "()` is called") in found:
            del found[text]
    return tuple(found.values())


def _reason(fn: FunctionClass, evidence: Evidence, tensor: bool | None) -> Reason:
    text = evidence.reason
    for opening in ("it is ", "its "):
        text = text.removeprefix(opening)
    place = place_of(fn, evidence.node) if evidence.node is not None else None
    if evidence.call is not None:
        text = f"passed{text.partition('passes')[2]}"
        place = place_in(fn.source, evidence.call)
    return Reason(text, tensor, evidence.trust.name.lower(), place)
