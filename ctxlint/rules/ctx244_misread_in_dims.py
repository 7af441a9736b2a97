"""CTX244: ``vmap`` that unpacks ``in_dims`` into the wrong number of names, or takes dimension 0 for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.input_unpackings import unfit_unpackings
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of, is_name, only_target
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class MisreadInDims(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `vmap` that unpacks `in_dims` into more or fewer names than `forward` has inputs, and one that tests the
    truth of an element of it to find out whether the input is mapped.

    ## Why is this bad?
    `in_dims` has one element for each input of `forward`, with defaults and non-tensors: the mapped dimension, or `None`.
    Under `torch.vmap`, another number of names raises `ValueError: too many values to unpack`.

    Dimension 0, the default of `torch.vmap`, is false. An input that is mapped over it gets one more dimension, as if it
    was not mapped: the result is wrong, or has the wrong shape.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x

        @staticmethod
        def vmap(info, in_dims, x, y):
            x_dim, y_dim = in_dims
            x = x.movedim(x_dim, 0) if x_dim else x.unsqueeze(0)
            y = y.movedim(y_dim, 0) if y_dim else y.unsqueeze(0)
            return Product.apply(x, y), 0
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x

        @staticmethod
        def vmap(info, in_dims, x, y):
            x_dim, y_dim = in_dims
            x = x.movedim(x_dim, 0) if x_dim is not None else x.unsqueeze(0)
            y = y.movedim(y_dim, 0) if y_dim is not None else y.unsqueeze(0)
            return Product.apply(x, y), 0
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    A truth test is reported if the dimension is not compared with anything, and if the branch for a false one adds a
    dimension to the input with `unsqueeze`, `expand` or `repeat`. Not reported if `target-torch` ends before 2.0.

    ## References
    - [Extending torch.func: the vmap staticmethod](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX244"
    name = "misread-in-dims"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        vmap = fn.methods.get("vmap")
        if vmap is None or vmap.inherited or not fn.signature_judgeable or not vmap.signature_known:
            return
        if len(vmap.positional) < 2 or not settings.torch.reach(2, 0):
            return
        in_dims = vmap.positional[1].name
        if in_dims in vmap.binders:
            return
        known = fn.forward is not None and fn.forward.signature_known and fn.variadic_inputs is None
        known = known and (fn.required_inputs == len(fn.inputs) or settings.torch.reach(2, 2))
        for each in unfit_unpackings(vmap, in_dims, len(fn.inputs)) if known else ():
            if not each.starred:
                yield Finding(
                    fn.span(each.node),
                    f"`vmap` of `{fn.name}` unpacks `{in_dims}` into {counted(each.names, 'name')}, but it has {len(fn.inputs)} "
                    f"elements, one for each input of `forward`; this raises ValueError under `torch.vmap`. Unpack "
                    f"{len(fn.inputs)} elements.",
                )
        for name, dimension, negated in _truth_tests(vmap, in_dims):
            remedy = f"{code_of(dimension)} is None" if negated else f"{code_of(dimension)} is not None"
            yield Finding(
                fn.span(dimension),
                f"`vmap` of `{fn.name}` tests the truth of `{code_of(dimension)}`; if `{name}` is mapped over dimension 0, "
                f"it gets another dimension, as if it was not mapped. Write `{remedy}`.",
            )


def _unpackings(vmap: Method, in_dims: str) -> Iterator[list[str]]:
    """The names that assignments unpack ``in_dims`` into, without a star."""
    for assign in vmap.nodes_of(cst.Assign):
        target = only_target(assign)
        if is_name(assign.value, in_dims) and isinstance(target, (cst.Tuple, cst.List)):
            names = [each.value for each in target.elements if isinstance(each, cst.Element)]
            if len(names) == len(target.elements):
                yield [each.value if isinstance(each, cst.Name) else "" for each in names]


def _truth_tests(vmap: Method, in_dims: str) -> Iterator[tuple[str, cst.BaseExpression, bool]]:
    """Tests that decide by the truth of a dimension whether its input is mapped, each after the input's name.

    Last, whether ``not`` is before it.
    """
    inputs = [each.name for each in vmap.positional[2:]]
    names = {name: at for targets in _unpackings(vmap, in_dims) for at, name in enumerate(targets[: len(inputs)])}
    if len(_reads(vmap, in_dims)) > 1:  # it may be asked elsewhere what is mapped
        return
    choices: list[cst.If | cst.IfExp] = [*vmap.nodes_of(cst.If), *vmap.nodes_of(cst.IfExp)]
    for choice in choices:
        test = choice.test
        negated = isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)
        asked = test.expression if isinstance(test, cst.UnaryOperation) and negated else test
        if not isinstance(asked, cst.Name) or asked.value not in names or len(vmap.binders[asked.value]) != 1:
            continue
        mapped, other = (choice.orelse, choice.body) if negated else (choice.body, choice.orelse)
        name = inputs[names[asked.value]]
        rest = [each for each in _reads(vmap, asked.value) if each is not asked]
        added = [call for call in vmap.nodes_of(cst.Call) if _adds_a_dimension(call, name)]
        always = {code_of(each) for each in added if _is_inside(vmap, each, mapped)}
        if all(_is_inside(vmap, each, mapped) for each in rest) and any(
            _is_inside(vmap, each, other) and code_of(each) not in always for each in added
        ):
            yield name, asked, negated


def _reads(vmap: Method, name: str) -> list[cst.Name]:
    """The places that read a variable."""
    return [
        each
        for each in vmap.named.get(name, ())
        if not isinstance(vmap.parents[each], cst.Param) and vmap.around(each, cst.AssignTarget) is None
    ]


def _is_inside(vmap: Method, node: cst.CSTNode, branch: cst.CSTNode | None) -> bool:
    return node is branch or any(each is branch for each in vmap.above(node))


def _adds_a_dimension(node: cst.CSTNode, name: str) -> bool:
    """Whether it is ``x.unsqueeze(0)`` or the like."""
    func = node.func if isinstance(node, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in _ADDING and is_name(func.value, name)


_ADDING = ("expand", "repeat", "unsqueeze")
