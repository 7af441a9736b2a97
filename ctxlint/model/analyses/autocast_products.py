"""Matrix products in backward of a gradient in the precision of autocast with a saved parameter in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.function import Binding
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import Alias, Choice, View, is_gradient, is_input
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Method
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.interpreter.values import Value


@record
class UnlikeFactors:
    """Such a ``product``, with the input that backward gets back, if the ``call`` runs forward under autocast."""

    product: GenericCall
    saved: str
    call: ApplyCall


def unlike_factors(fn: FunctionClass) -> UnlikeFactors | None:
    """The first product of two dtypes, if nothing in the Function sets autocast or converts what it multiplies."""
    forward, backward = fn.forward, fn.backward
    calls = [each for each in fn.calls if each.uncast and each.applies and not each.expects_error]
    if not calls or forward is None or backward is None or not (_is_plain(forward) and _is_plain(backward)):
        return None
    made = {each.node for each in _products(forward)}
    outputs = [each for value in fn.outputs_values() for each in _bases(value)]
    if len({returned.count for returned in fn.outputs}) != 1 or not made.issuperset(map(_node, outputs)):
        return None
    for product in _products(backward):
        factors = [[*_bases(each.value)] for each in product.arguments]
        for one, other in (factors, factors[::-1]):
            if any(map(is_gradient, one)):
                kept = (kept_value(fn, each) for each in other)
                inputs = [each for each in kept if is_input(each)]
                for entry in inputs:
                    call = next((each for each in calls if entry.index in each.uncast), None)
                    if call is not None:
                        return UnlikeFactors(product, entry.name, call)
    return None


def _is_plain(method: Method) -> bool:
    """Whether a method of the class has no decorator but ``@staticmethod``, and does not mention autocast."""
    decorators = len(method.decorators) == (method.binding is Binding.STATIC)
    return decorators and not method.inherited and not mentions(method, "autocast", "autocast")


def mentions(method: Method, attribute: str, name: str) -> bool:
    """Whether a method has an attribute, or a name, with such a part."""
    return any(attribute in each.attr.value for each in method.nodes_of(cst.Attribute)) or any(
        name in each for each in method.named
    )


def _products(method: Method) -> Iterator[GenericCall]:
    """The matrix products of two tensors in a method."""
    for each in method.facts.of(GenericCall):
        if each.callee in _PRODUCTS and len(each.arguments) == 2 and not each.keywords:
            yield each


_PRODUCTS = frozenset({"torch.mm", "torch.matmul", "torch.bmm"})


def _bases(value: Value) -> Iterator[Value]:
    """The tensors whose dtype a value has, on some path."""
    if isinstance(value, View) and value.alias in (Alias.ALWAYS, Alias.USUALLY, Alias.IF_PERMUTED):
        yield from _bases(value.of)
    elif isinstance(value, Choice):
        for each in value.alternatives:
            yield from _bases(each)
    else:
        yield value


def _node(value: Value) -> cst.CSTNode | None:
    node = getattr(value, "node", None)
    return node if isinstance(node, cst.CSTNode) else None
