"""CTX804: a custom operator returns an input, a view of one, or one tensor twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.patterns import pattern
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import SharedResult


class OperatorSharedResult(Rule[SourceFile]):
    """
    ## What it does
    Reports a function under `torch.library.custom_op` or `triton_op` that returns one of its inputs, a view of one, or two
    results that share memory. Also its fake, the function under `register_fake`, and a function under `torch.library.impl`
    that returns an input, or a view of one, of an operator whose schema does not mark that: `(Tensor(a) x) -> Tensor(a)`.

    ## Why is this bad?
    Torch compares the memory of all results and inputs after each call, and raises `RuntimeError: The output of this
    custom operator (1) must not also be an input to this custom operator and (2) may not alias any inputs to this custom
    operator or other returns`, with and without gradients. A shortcut for a special case (`if world_size == 1: return x`)
    raises only there. It does not compare the results of `torch.library.impl`; `torch.compile` takes them for new tensors
    then, and modifies the input where the code modifies the result, or does not. Torch 2.13 warns of it when compiled
    code runs for the first time, and raises where the environment variable `CI` is set.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::chunk", mutates_args=())
    def chunk(x: torch.Tensor, size: int) -> torch.Tensor:
        if x.shape[0] % size:
            x = torch.nn.functional.pad(x, (0, 0, 0, size - x.shape[0] % size))
        return x.narrow(0, 0, x.shape[0] // size)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::chunk", mutates_args=())
    def chunk(x: torch.Tensor, size: int) -> torch.Tensor:
        if x.shape[0] % size:
            x = torch.nn.functional.pad(x, (0, 0, 0, size - x.shape[0] % size))
        return x.narrow(0, 0, x.shape[0] // size).clone()
    ```

    An operator that writes into an input returns nothing: `-> None`. A fake returns a new tensor, such as
    `torch.empty_like(x)`.

    ## Fix safety
    There is no fix: a copy costs memory, and an operator may be better off without the result.

    ## Known limits
    Not reported for `reshape` and `contiguous`, which may copy, for operators with `tags`, a `schema` or further
    decorators, for two results of `torch.library.define` that share memory, or for an `out` that such a function fills.

    ## References
    - [torch.library.custom_op](https://pytorch.org/docs/stable/library.html#torch.library.custom_op)
    """

    code = "CTX804"
    name = "operator-shared-result"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.shared_results if settings.torch.reach(2, 4) else ():
            if not (each.by_schema and any(map(_FILLED.search, each.parameters))):
                yield Finding(each.span, _message(each))


_FILLED = pattern(r"(?:^|_)out(?:put)?s?\d*$")
"""What parameters are called that such a function fills: what is missing is a ``!`` in the schema, not a copy."""


def _message(shared: SharedResult) -> str:
    several = len(shared.parameters) > 1
    if shared.fake:
        when = "" if shared.always else " on one path"
        remedy = f"Return `torch.empty_like({shared.parameters[0]})`" if shared.parameters and shared.whole else _EMPTY
        if several:
            remedy = _EMPTIES
        effect = "`torch.library.opcheck` raises"
        if shared.whole and len(shared.parameters) == 1:
            effect += f", and exported code that modifies the result modifies `{shared.parameters[0]}`"
        return f"The fake of `{shared.function}` returns {_what(shared)}{when}, which operators never do; {effect}. {remedy}."
    when = "whenever it returns here" if shared.always else "on one path"
    remedy = "Return a `.clone()` of it"
    if not shared.parameters:
        remedy = "Return `.clone()` for one of them"
    elif several:
        remedy = "Return a `.clone()` of each"
    elif shared.whole:
        remedy = f"Return `{shared.parameters[0]}.clone()`"
    if shared.by_schema:
        takes = (
            f"`torch.library.opcheck` raises, and `torch.compile` takes {'them' if several else 'it'} for new memory"
        )
        return f"`{shared.function}` returns {_what(shared)}{' on one path' * (not shared.always)}, which its schema does not say; {takes}. {remedy}."
    return f"`{shared.function}` returns {_what(shared)}; torch raises RuntimeError {when}. {remedy}."


def _what(shared: SharedResult) -> str:
    names = shared.parameters
    if not names:
        return "the same tensor twice" if shared.whole else "two tensors that share memory"
    view = "" if shared.whole else "memory of " if len(names) > 1 else "a view of "
    if len(names) > _MOST_NAMES:
        return f"{view}{len(names)} of its inputs"
    return f"{view}its {'inputs' if len(names) > 1 else 'input'} {quoted(names)}"


_MOST_NAMES = 3
_EMPTY = "Return a new tensor, such as `torch.empty_like(…)`"
_EMPTIES = "Return new tensors, such as `torch.empty_like(…)`"
