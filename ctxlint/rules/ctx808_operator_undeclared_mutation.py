"""CTX808: a custom operator modifies an input, and ``mutates_args`` is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorUndeclaredMutation(Rule[SourceFile]):
    """
    ## What it does
    Reports a function under `torch.library.custom_op` or `triton_op` that modifies an input in place, also one that may be
    None, although its `mutates_args` is empty.

    ## Why is this bad?
    `mutates_args` must name every input that the operator modifies; torch does not check it. An operator without results
    that modifies nothing has no effect, so `torch.compile` removes its calls: the compiled function silently computes with
    the old values. Of an operator with results, it removes the calls whose result nothing uses. `torch.library.opcheck` raises.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::clip", mutates_args=())
    def clip(x: torch.Tensor, limit: float) -> None:
        x.clamp_(-limit, limit)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::clip", mutates_args=("x",))
    def clip(x: torch.Tensor, limit: float) -> None:
        x.clamp_(-limit, limit)
    ```

    ## Fix safety
    There is no fix: with the name, the operator can no longer have a `register_autograd`. One that has a gradient must write
    to a copy instead.

    ## Known limits
    Not reported for an operator that names another input. Not reported if the write is in code that is not analysed, or for operators with
    `tags`, a `schema` or further decorators.

    ## References
    - [torch.library.custom_op](https://pytorch.org/docs/stable/library.html#torch.library.custom_op)
    """

    code = "CTX808"
    name = "operator-undeclared-mutation"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.undeclared_writes if settings.torch.reach(2, 4) else ():
            names = ", ".join(f'"{name}"' for name in each.parameters)
            declaration = f"`mutates_args=({names}{',' if len(each.parameters) == 1 else ''})`"
            dropped = "its calls" if each.returns_nothing else "calls whose result is unused"
            or_copy = "" if each.returns_nothing else ", or modify a copy if it has a gradient"
            fact = f"`{each.function}` modifies {quoted(each.parameters)} in place although its `mutates_args` is empty"
            message = f"{fact}; `torch.compile` silently drops {dropped}. Write {declaration}"
            yield Finding(each.span, fitting(f"{message}{or_copy}.", f"{message}."))
