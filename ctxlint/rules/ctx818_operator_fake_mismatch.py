"""CTX818: the fake of a custom operator takes other arguments, or returns another number of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FakeFault, SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted, fitting, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import FakeMismatch


class OperatorFakeMismatch(Rule[SourceFile]):
    """
    ## What it does
    Reports a fake, registered with `register_fake`, that does not take the arguments of its operator, or that returns
    another number of tensors.

    ## Why is this bad?
    Calls in eager mode work: torch runs the fake only when it traces the operator. `torch.export` then raises TypeError,
    and `torch.compile` breaks the graph, for arguments that the fake does not take. Torch also omits trailing arguments
    that are the operator's defaults, so that the fake needs them as well. If the fake returns too many tensors, the
    process crashes; if it returns too few, compiled code gets no more, or torch breaks the graph where it unpacks them.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor


    @scaled.register_fake
    def _(x, factor):
        return torch.empty_like(x)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor


    @scaled.register_fake
    def _(x, factor=2.0):
        return torch.empty_like(x)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only operators that a single decorator `custom_op` or `triton_op` defines are judged, without `tags` and `schema`, and
    fakes under a single decorator. The shapes, types and layouts of the results are not compared; see
    `torch.library.opcheck`.

    ## References
    - [torch.library.register_fake](https://pytorch.org/docs/stable/library.html#torch.library.register_fake)
    - [torch.library.opcheck](https://pytorch.org/docs/stable/library.html#torch.library.opcheck)
    """

    code = "CTX818"
    name = "operator-fake-mismatch"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.fake_mismatches:
            yield Finding(each.span, fitting(_message(each)))


def _message(each: FakeMismatch) -> str:
    fake, names = f"The fake of `{each.function}`", _named(each.names)
    match each.fault:
        case FakeFault.NOT_TAKEN:
            when = f" if a call passes {them(each.names)}" if each.sometimes else ""
            what = f"{fake} does not take {names}, which the operator has; {_RAISES}{when}"
            return f"{what}. Add {them(each.names)} to its parameters."
        case FakeFault.REQUIRED:
            return f"{fake} needs {names}, which the operator does not have; {_RAISES}. Drop {them(each.names)}."
        case FakeFault.DEFAULT:
            left_out = (
                "torch omits trailing arguments that are defaults of the operator, and `torch.export` raises TypeError"
            )
            default = f"Write `{each.names[0]}={each.default}`" if each.default else "Write those of the operator"
            lacks = "no default" if len(each.names) == 1 else "no defaults"
            return f"{fake} has {lacks} for {names}; {left_out}. {default}."
        case FakeFault.SHIFTED:
            missing, other = each.names
            what = f"{fake} lacks `{missing}`, and its `{other}` gets that argument"
            return f"{what}; it computes with the wrong ones when torch traces it. Add `{missing}` before `{other}`."
        case FakeFault.RESULTS:
            return (
                f"{fake} returns {_tensors(each.returned)} but the operator {_tensors(each.expected)}; {_effect(each)}."
            )
    raise AssertionError


def _effect(each: FakeMismatch) -> str:
    """What torch does when it traces the operator, and what to return."""
    remedy = f"Return {_tensors(each.expected)}"
    if each.expected is None or each.returned is None:
        return f"`torch.compile` raises RuntimeError. {remedy}"
    if each.returned > each.expected:
        return f"`torch.compile` kills the process. {remedy}"
    return f"`torch.compile` returns only {each.returned}, or breaks the graph. {remedy}"


def _tensors(number: int | None) -> str:
    return "a tensor" if number is None else f"a tuple of {number}"


def _named(names: tuple[str, ...]) -> str:
    return quoted(names) if len(names) <= _MOST_NAMES else counted(len(names), "parameter")


_MOST_NAMES = 3
_RAISES = "`torch.export` raises TypeError, and `torch.compile` breaks the graph"
