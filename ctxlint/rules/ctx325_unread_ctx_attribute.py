"""CTX325: a flag or number on ctx that backward never reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.unread_attributes import unread_attributes
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at, unread_by
from ctxlint.rules.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.unread_attributes import UnreadAttribute


class UnreadCtxAttribute(Rule[FunctionClass]):
    """
    ## What it does
    Reports a flag, a number, a shape or a dtype that `forward` keeps in an attribute of ctx and that nothing reads, also one that
    `backward` only binds to a name, and a flag that `backward` only passes to a function of the project that never reads it.

    ## Why is this bad?
    An attribute that is set for `backward` is usually needed there. If `forward` computes something else for
    `training=False`, and `backward` does not know it, gradients are silently wrong in that case. Or `backward` reads another attribute
    in its place, such as the height twice instead of height and width. Otherwise it is dead code.

    ## Example
    ```python
    import torch


    class Center(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, mean, training):
            ctx.training = training
            return x - (x.mean() if training else mean)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output - grad_output.mean(), None, None
    ```

    ## Use instead
    ```python
    import torch


    class Center(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, mean, training):
            ctx.training = training
            return x - (x.mean() if training else mean)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output - grad_output.mean() if ctx.training else grad_output, None, None
    ```

    ## Fix safety
    There is no fix: only the author knows whether the attribute is missing in `backward`.

    ## Known limits
    Off by default: most such attributes are only left over. Tensors and other objects, which ctx may keep alive on purpose, are not
    reported, and neither is a Function whose ctx reaches code that ctxlint cannot follow. What other files read of
    `output.grad_fn` is unknown.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html#how-to-use)
    """

    code = "CTX325"
    name = "unread-ctx-attribute"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        found = list(unread_attributes(fn, backward)) if backward is not None else []
        for each in found:
            if each.bound:
                notes = at(fn, [*each.bound, *filter(None, [each.instead])], "here")
                yield Finding(fn.span(each.write.node), _message_of_bound(fn, each), related=notes)
            elif each.tested is not None:
                yield Finding(
                    fn.span(each.write.node), _message(fn, each, each.tested.name), related=unread_by(fn, each.given_to)
                )
        plain = [each.write for each in found if each.tested is None and not each.bound]
        if plain:
            notes = at(fn, [each.node for each in plain[1:]], "and this one")
            yield Finding(fn.span(plain[0].node), _message_of(fn, [each.attribute for each in plain]), related=notes)


def _message(fn: FunctionClass, found: UnreadAttribute, tested: str) -> str:
    attribute = f"{fn.storing_ctx}.{found.write.attribute}"
    fact = f"`backward` of `{fn.name}` never reads `{attribute}`"
    if found.given_to:
        fact = f"`backward` of `{fn.name}` passes `{attribute}` only to `{found.given_to[0].called}`, which ignores it"
    return (
        f"{fact}; `forward` tests `{tested}`, and a gradient that depends on it is silently wrong. "
        f"Use it in `backward`, or remove it."
    )


def _message_of_bound(fn: FunctionClass, found: UnreadAttribute) -> str:
    """For one that only a name is bound to."""
    name = code_of(found.bound[0].targets[0].target)
    fact = f"`backward` of `{fn.name}` never uses `{name}`, which is `{fn.storing_ctx}.{found.write.attribute}`"
    depends, remedy = "a gradient that depends on it is silently wrong", "Use it in `backward`, or remove it."
    if found.instead is not None:
        return f"{fact}, but passes `{code_of(found.instead)}`; {depends}. Pass `{name}={name}`."
    if found.tested is not None:
        return f"{fact}; `forward` tests `{found.tested.name}`, and {depends}. {remedy}"
    return f"{fact}; it is left over, or missing there. {remedy}"


def _message_of(fn: FunctionClass, attributes: list[str]) -> str:
    """For those that may be left over."""
    first, more = f"`{fn.storing_ctx}.{attributes[0]}`", len(attributes) - 1
    names = f"{first} and {counted(more, 'other attribute')}" if more else first
    they, are = ("they", "are") if more else ("it", "is")
    them = "them" if more else "it"
    return (
        f"`backward` of `{fn.name}` never reads {names}; {they} {are} left over, or missing there. "
        f"Use {them} in `backward`, or remove {them}."
    )
