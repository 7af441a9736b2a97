"""Is this input of forward a tensor? The evidence for and against, and the verdict.

In the order of trust that real code teaches: its own gradient slot, literals at calls of the class, exact annotations and
uses that only a tensor (or only a plain value) allows, default values, and at last how it is kept on ctx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.code import dotted
from ctxlint.model.functions import (
    ApplyCall,
    ArgumentKind,
    Evidence,
    Input,
    InputKind,
    Param,
    Returned,
    Trust,
)
from ctxlint.model.values import Constant, Tri, is_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


# ---------------------------------------------------------------------------------------------------------------------
# The verdict


def decide(evidence: Iterable[Evidence], optional: bool) -> InputKind:
    """What the evidence makes of an input. Two strong pieces that contradict each other leave it unknown."""
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
    gradient: Tri,
    evidence: Iterable[Evidence],
) -> Input:
    """The input number ``index``, from all its evidence."""
    collected = [*evidence, *from_signature(param)]
    if gradient is Tri.YES:
        collected.append(Evidence(True, Trust.PROOF, "`backward` returns a gradient for it", own_gradient=True))
    ordered = tuple(sorted(collected, key=lambda each: -each.trust.value))
    optional = _defaults_to_none(param) or "Optional" in (param.annotation or "") or "None" in (param.annotation or "")
    return Input(index, param.name, param, decide(ordered, optional), ordered, gradient)


def gradient_of(index: int, inputs: int, required: int, gradients: Sequence[Returned]) -> Tri:
    """Does backward return something other than None for input ``index``, on some path?

    Unknown where a return has too few gradients for its positions to mean anything, or an unknown number before it.
    """
    answers: set[Tri] = set()
    for returned in gradients:
        answers.add(_slot_answer(index, inputs, required, returned))
    if Tri.YES in answers:
        return Tri.YES
    return Tri.NO if answers == {Tri.NO} else Tri.UNKNOWN


def _slot_answer(index: int, inputs: int, required: int, returned: Returned) -> Tri:
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
    """What the annotation and the default of a parameter say."""
    found: list[Evidence] = []
    annotation = param.annotation
    if annotation is not None:
        by_annotation = _from_annotation(annotation)
        if by_annotation is not None:
            found.append(by_annotation)
    default = param.default
    stretched = annotation is None or _without_optional(annotation) == "builtins.float"
    if isinstance(default, Constant) and default.value is not None and stretched:
        kind = default.type_name
        trust = Trust.STRONG if kind in ("bool", "str") else Trust.FAIR
        found.append(Evidence(False, trust, f"its default is {default.value!r}", param.node))
    return found


def _from_annotation(annotation: str) -> Evidence | None:
    plain = _without_optional(annotation)
    head = plain.partition("[")[0]
    if plain in tables.TENSOR_ANNOTATIONS:
        return Evidence(True, Trust.STRONG, f"it is annotated `{_short(annotation)}`")
    if plain in tables.NON_TENSOR_ANNOTATIONS or head in ("typing.Callable", "collections.abc.Callable"):
        return Evidence(False, Trust.STRONG, f"it is annotated `{_short(annotation)}`")
    if head in tables.CONTAINER_ANNOTATIONS:
        return Evidence(False, Trust.STRONG, f"it is annotated `{_short(annotation)}`, a container")
    if plain == "builtins.float":
        return Evidence(False, Trust.FAIR, "it is annotated `float`")
    return None


def _without_optional(annotation: str) -> str:
    if annotation.startswith("typing.Optional[") and annotation.endswith("]"):
        return annotation[len("typing.Optional[") : -1]
    parts = [part.strip() for part in annotation.split("|")]
    kept = [part for part in parts if part != "None"]
    return kept[0] if len(kept) == 1 and len(parts) == 2 else annotation


def _short(annotation: str) -> str:
    for prefix in ("builtins.", "typing.", "torch.nn.parameter.", "torch.nn.", "torch."):
        annotation = annotation.replace(prefix, "")
    return annotation


def _defaults_to_none(param: Param) -> bool:
    return isinstance(param.default, Constant) and param.default.value is None


# ---------------------------------------------------------------------------------------------------------------------
# The calls


def from_calls(index: int, calls: Iterable[ApplyCall]) -> list[Evidence]:
    """What the calls of the class in view pass at this position."""
    found: list[Evidence] = []
    for call in calls:
        if call.how not in ("apply", "construct-apply") or index >= len(call.arguments):
            continue
        kind = call.arguments[index]
        if kind in (ArgumentKind.NUMBER, ArgumentKind.STRING, ArgumentKind.BOOL):
            found.append(Evidence(False, Trust.PROOF, f"line {call.span.start.line} passes a {kind.value}"))
        elif kind is ArgumentKind.CONTAINER:
            found.append(Evidence(False, Trust.STRONG, f"line {call.span.start.line} passes a container"))
        elif kind is ArgumentKind.TENSOR:
            found.append(Evidence(True, Trust.STRONG, f"line {call.span.start.line} passes a tensor"))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# The uses


class Uses:
    """Collects what a method does with names (``x``) and attributes (``ctx.x``), until they are bound anew.

    A second name for one of them, ``w = ctx.weight``, counts as well.
    """

    def __init__(self, names: Iterable[str], canonical: Callable[[cst.BaseExpression], str | None]) -> None:
        self.open = {name: name for name in names}
        self.evidence: dict[str, list[Evidence]] = {name: [] for name in self.open}
        self.canonical = canonical

    def walk(self, node: cst.CSTNode) -> None:
        """Visit a node and what is inside it, in the order of execution where that matters."""
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            if node.value is not None:
                self.walk(node.value)
            if isinstance(node, cst.AugAssign):
                return
            for target in [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]:
                self.target(target, node.value)
            return
        if isinstance(node, cst.For):
            self.walk(node.iter)
            self.target(node.target)
            self.walk(node.body)
            return
        if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.Annotation)):
            return
        if isinstance(node, cst.Call):
            self.call(node)
        elif isinstance(node, cst.Attribute):
            self.attribute(node)
        elif isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.MatrixMultiply):
                for side in (node.left, node.right):
                    self.add(side, True, Trust.STRONG, "it is an operand of `@`")
        elif isinstance(node, cst.Comparison):
            self.comparison(node)
        elif isinstance(node, cst.Subscript):
            self.subscript(node)
        for child in node.children:
            if not isinstance(child, (cst.BaseParenthesizableWhitespace, cst.Name)):
                self.walk(child)

    def add(self, node: cst.CSTNode, tensor: bool, trust: Trust, reason: str) -> None:
        name = self.known(node)
        if name is not None:
            self.evidence[name].append(Evidence(tensor, trust, reason, node))

    def known(self, node: cst.CSTNode | None) -> str | None:
        """Which of the names an expression is, if any."""
        path = dotted(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        return self.open.get(path) if path is not None else None

    def target(self, target: cst.BaseExpression, value: cst.BaseExpression | None = None) -> None:
        if isinstance(target, cst.Name):
            same = self.known(value)
            self.open.pop(target.value, None)
            if same is not None:
                self.open[target.value] = same
        elif isinstance(target, (cst.Tuple, cst.List)):
            values = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
            paired = len(values) == len(target.elements)
            for at, element in enumerate(target.elements):
                self.target(element.value, values[at].value if paired else None)
        elif isinstance(target, cst.StarredElement):
            self.target(target.value)
        else:
            self.walk(target)

    def attribute(self, node: cst.Attribute) -> None:
        if node.attr.value in tables.TENSOR_ONLY_ATTRIBUTES:
            self.add(node.value, True, Trust.STRONG, f"`.{node.attr.value}` is read of it")
        elif node.attr.value in tables.TENSOR_LIKE_NAMES:
            self.add(node.value, True, Trust.HINT, f"`.{node.attr.value}` is read of it")

    def call(self, node: cst.Call) -> None:
        func = node.func
        if isinstance(func, cst.Attribute):
            name = func.attr.value
            sized = name == "size" and len(node.args) > 0
            if name in tables.TENSOR_ONLY_METHODS or sized:
                self.add(func.value, True, Trust.STRONG, f"`.{name}()` is called on it")
            if name in ("save_for_backward", "mark_dirty", "mark_non_differentiable", "save_for_forward"):
                for argument in node.args:
                    self.add(argument.value, True, Trust.FAIR, f"it is given to `{name}`")
        self.add(func, False, Trust.STRONG, "it is called")
        callee = self.canonical(func)
        if callee is not None:
            self.known_callee(node, callee)

    def known_callee(self, node: cst.Call, callee: str) -> None:
        if callee == "builtins.range":
            for argument in node.args:
                self.add(argument.value, False, Trust.STRONG, "it is given to `range`")
        elif callee == "builtins.isinstance" and node.args:
            self.add(node.args[0].value, True, Trust.STRONG, "its type is tested")
            self.add(node.args[0].value, False, Trust.STRONG, "its type is tested")
        space, _, name = callee.rpartition(".")
        if f"{space}." in tables.TORCH_NAMESPACES and name in _TENSOR_FIRST and node.args:
            first = node.args[0]
            if first.keyword is None and not first.star:
                self.add(first.value, True, Trust.STRONG, f"it is given to `{name}`")
        if callee.startswith("torch."):
            for argument in node.args:
                if argument.keyword is not None and argument.keyword.value in _NON_TENSOR_KEYWORDS:
                    reason = f"it is given as `{argument.keyword.value}=`"
                    self.add(argument.value, False, Trust.STRONG, reason)

    def comparison(self, node: cst.Comparison) -> None:
        for part in node.comparisons:
            if isinstance(part.operator, (cst.Equal, cst.NotEqual)) and isinstance(part.comparator, cst.SimpleString):
                self.add(node.left, False, Trust.STRONG, "it is compared with a string")
            elif isinstance(part.operator, (cst.In, cst.NotIn)) and _strings_only(part.comparator):
                self.add(node.left, False, Trust.STRONG, "it is looked up among strings")

    def subscript(self, node: cst.Subscript) -> None:
        holder = node.value
        of_shape = isinstance(holder, cst.Attribute) and holder.attr.value == "shape"
        if of_shape and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            self.add(node.slice[0].slice.value, False, Trust.STRONG, "a shape is indexed with it")


_TENSOR_FIRST = (tables.TENSOR_METHODS | {"empty_like", "rand_like", "randn_like", "full_like", "relu"}) - {
    "where",
    "pow",
    "add",
    "mul",
    "multiply",
    "kron",
    "all",
    "any",
    "arange",
    "randint",
    "randperm",
    "bernoulli",
    "get_rng_state",
    "maximum",
    "minimum",
}
"""Functions of torch whose first argument can only be a tensor."""

_NON_TENSOR_KEYWORDS = frozenset(
    ["group", "dim", "dims", "dtype", "device", "keepdim", "async_op", "stride", "padding", "generator", "eps"]
)


def _strings_only(node: cst.BaseExpression) -> bool:
    if not isinstance(node, (cst.Tuple, cst.List, cst.Set)) or not node.elements:
        return False
    return all(isinstance(element.value, cst.SimpleString) for element in node.elements)
