"""CTX220: a tensor without a graph is differentiated inside a Function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.differentiated_outputs import Fate, OwnOutput, own_output
from ctxlint.model.analyses.grad_mode import (
    differentiated_untracked,
    fate_of_leaf,
    is_off_at_first,
    makes_views,
    may_collect_views,
    untracked,
    views_behind,
)
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import Differentiated, GraphUseInside
from ctxlint.model.interpreter.values import View, detaches
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import fitting, if_it_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method


class UntrackedDifferentiation(Rule[FunctionClass]):
    """
    ## What it does
    Reports `torch.autograd.grad(y, ...)`, `torch.autograd.backward(y)` and `y.backward()` inside a method of a Function
    that computes `y` with grad mode off; in `backward`, also for a `y` that `forward` computed in this way and stored
    or returned. Also calls of functions that compute `y` and differentiate it.

    ## Why is this bad?
    Autograd runs `forward`, `setup_context` and `backward` with grad mode off (`backward` with grad mode on only under
    `create_graph=True`), so their results have no graph. Every call raises `RuntimeError: element 0 of tensors does not
    require grad and does not have a grad_fn`, even if an input of `y` requires a gradient.

    Setting `y.requires_grad` afterwards does not help: `y` becomes a leaf, still without a graph. `torch.autograd.grad`
    then raises because the input is not used in the graph, or returns `None` under `allow_unused=True`.

    An output is differentiated through the Function itself: `apply` replaces its graph, also one that `forward` built
    under `torch.enable_grad()`. Then `backward` calls itself until Python's stack or the threads run out, or torch
    raises because the other tensor is not in that graph. Return `y.detach()`, and the stored `y` keeps its own graph. An
    inherited `backward` may do so as well: this is reported where the class saves the output.

    A view that is made with grad mode off has no graph either, also if its base requires a gradient: with `out` alone
    under `torch.enable_grad()`, `torch.autograd.grad` raises `RuntimeError: The differentiated Tensor appears to not
    have been used in the graph`.

    ## Example
    ```python
    import torch


    class Tanh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.tanh(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            y = torch.tanh(x)
            return torch.autograd.grad(y, x, grad_output)[0]
    ```

    ## Use instead
    ```python
    import torch


    class Tanh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.tanh(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = torch.tanh(x)
            return torch.autograd.grad(y, x, grad_output)[0]
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if the tensor is the result of a call outside of torch and the project, under a `with` statement or a
    decorator that may switch grad mode on, in a `backward` that tests the mode, or in methods that are called directly.

    ## References
    - [torch.enable_grad](https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.enable_grad.html)
    """

    code = "CTX220"
    name = "untracked-differentiation"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable:
            return
        for method in fn.own_protocol_methods:
            if method.name in fn.called_directly:
                continue
            seen: set[cst.CSTNode] = set()
            for each in method.facts.of(Differentiated):
                own = own_output(fn, method, each)
                if own is not None and each.node not in seen:
                    seen.add(each.node)
                    yield Finding(fn.span(each.node), _of_output(fn, method, each, own))
                    continue
                home, fate = differentiated_untracked(fn, method, each.value), "raises RuntimeError"
                if home is None:
                    home, fate = method, fate_of_leaf(method, each)
                if each.node in seen or not fate:
                    continue
                seen.add(each.node)
                value = each.value if home is method else kept_value(fn, each.value)
                views = views_behind(home, value, each.node if home is method else None)
                yield Finding(
                    fn.span(each.node),
                    _what(fn, method, home, each, fate, has_views=bool(views) or may_collect_views(home, value)),
                    related=at(fn, views, "a view that is made with grad mode off has no graph, either"),
                )
            yield from _inside(fn, method)
        yield from _by_inherited_backward(fn)


def _by_inherited_backward(fn: FunctionClass) -> Iterator[Finding]:
    """The first call of ``save_for_backward`` that keeps an output, which a ``backward`` of a base differentiates."""
    backward, home = fn.backward, fn.setup_context or fn.forward
    if backward is None or not backward.inherited or home is None or home.inherited or len(fn.saves) != 1:
        return
    for each in backward.facts.of(Differentiated):
        own = own_output(fn, backward, each)
        if own is not None:
            remedy, always = _remedy_of_output(fn, own), not if_it_runs(fn, backward, each.node)
            how = ", and the inherited `backward` differentiates it; "
            how = how if always else "; where the inherited `backward` differentiates it, "
            yield Finding(
                fn.span(fn.saves[0].node),
                f"`{fn.name}` saves an output, whose graph is this Function{how}{own.fate.value.format(backward.name)}. {remedy}",
                related=at(fn, [each.node], "the inherited `backward` differentiates it here"),
            )
            return


def _inside(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """Calls of functions that differentiate a tensor which they compute with grad mode off."""
    for call in method.facts.of(GraphUseInside):
        if call.how and is_off_at_first(method, call.node):
            yield Finding(
                fn.span(call.node),
                f"`{call.by}` differentiates what it computes, with grad mode off in `{method.name}` of `{fn.name}`; "
                f"`{call.how}` raises RuntimeError. Call it under `with torch.enable_grad():`, with "
                "`.detach().requires_grad_()` inputs.",
                related=way_to(fn, call),
            )


def _call(fn: FunctionClass, method: Method, each: Differentiated) -> str:
    how = f"`{each.how}`" if each.how.startswith("torch.") else "`.backward()`"
    return f"{how} in `{method.name}` of `{fn.name}` differentiates"


def _of_output(fn: FunctionClass, method: Method, each: Differentiated, own: OwnOutput) -> str:
    """What comes of differentiating an output, and what to write."""
    name = f"the output `{each.value_node.value}`" if isinstance(each.value_node, cst.Name) else "an output"
    fate = own.fate.value.format(method.name) + if_it_runs(fn, method, each.node)
    return f"{_call(fn, method, each)} {name}, whose graph is this Function; {fate}. {_remedy_of_output(fn, own)}"


def _remedy_of_output(fn: FunctionClass, own: OwnOutput) -> str:
    """What to write, so that a stored output keeps a graph of its own, which ``setup_context`` never sees."""
    returned = {node.value if isinstance(node, cst.Name) else None for node in own.returned}
    here = returned.pop() if len(returned) == 1 else None
    forward = fn.forward
    views = forward is not None and (
        bool(views_behind(forward, own.value)) or (own.fate is Fate.UNKNOWN and makes_views(forward))
    )
    detached = f"Return `{here}.detach()`" if here is not None else "Return it detached"
    remedy = f"{detached}{', and make all views under `enable_grad()`' * views}."
    if fn.setup_context is not None or (fn.forward is not None and untracked(fn, fn.forward, own.value)):
        remedy = "Compute it in `backward` under `enable_grad()`, from `.detach().requires_grad_()` inputs."
    return remedy


def _what(fn: FunctionClass, method: Method, home: Method, each: Differentiated, fate: str, *, has_views: bool) -> str:
    """The differentiated tensor, what comes of that, and what to write."""
    node, value = each.value_node, each.value
    name = f"`{node.value}`" if isinstance(node, cst.Name) else "a tensor"
    if isinstance(value, View) and detaches(value) and not untracked(fn, method, value.of):
        how = ".data" if isinstance(value.node, cst.Attribute) else ".detach()"
        written = f"`{code_of(node)}`" if node is value.node and node is not None else name
        return f"{_call(fn, method, each)} {written}, which is detached; it raises RuntimeError. Drop `{how}`."
    where = "is computed" if home is method else f"`{home.name}` computed"
    remedies = [
        "Compute it under `with torch.enable_grad():`, from inputs with `.detach().requires_grad_()`",
        "Compute it under `enable_grad()`, from `.detach().requires_grad_()` inputs",
    ]
    if has_views:
        remedies = ["Compute it and all views under `enable_grad()`, from `.detach().requires_grad_()` inputs"]
    start = f"{_call(fn, method, each)} {name}, which {where} with grad mode off; it {fate}"
    return fitting(*(f"{start}. {remedy}." for remedy in remedies))
