"""CTX816: torch rejects the signature of a custom operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.diagnostic import Related
from ctxlint.model.function import SourceFile
from ctxlint.model.index.operator_signatures import RejectedPart
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import RejectedOperator

_LONGEST = 40


class OperatorSignature(Rule[SourceFile]):
    """
    ## What it does
    Reports a function under `torch.library.custom_op` or `triton_op` whose signature torch rejects: an annotation that is
    missing, of a type that operators do not have, or with a name that is imported under `TYPE_CHECKING` only; a default
    that is a list or tuple, infinite, or `None` for a list; `*args`, `**kwargs` and positional-only parameters; or
    `mutates_args` that names no parameter, or one that is not a tensor, or is a string other than `"unknown"`.

    ## Why is this bad?
    Torch infers the schema of the operator from the signature as soon as the function is defined, and raises
    `ValueError: infer_schema(func): Parameter sizes has unsupported type tuple[int, ...]`. Then it reads the schema, and
    raises `RuntimeError: expected [ but found 'None' here` for `dims: list[int] = None`. The file cannot be imported.

    Parameters are `Tensor`, `int`, `float`, `bool`, `str`, `torch.types.Number`, `torch.dtype`, `torch.device`, or
    `Optional` of these; `list` or `Sequence` of `Tensor`, `int`, `float`, `bool` or `Number`; `list[Optional[Tensor]]`;
    and `Optional[list[int]]`, with `float` and `bool` as well. Results are `Tensor`, `list[Tensor]`, `int`, `float`,
    `bool`, `Number`, tuples of these, or `None`.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::pad", mutates_args=())
    def pad(x: torch.Tensor, sizes: tuple[int, ...]) -> torch.Tensor:
        return torch.nn.functional.pad(x, sizes)
    ```

    ## Use instead
    ```python
    from collections.abc import Sequence

    import torch


    @torch.library.custom_op("demo::pad", mutates_args=())
    def pad(x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        return torch.nn.functional.pad(x, sizes)
    ```

    ## Fix safety
    There is no fix: another type may ask for other arguments.

    ## Known limits
    Classes of the project and of other packages are not judged, nor those that newer releases take, such as `DeviceMesh` (`Optional` of one
    is rejected), nor names that a condition decides. Not reported for
    operators with a `schema`, `tags` or further decorators, or in an indented function, which may never be defined.

    ## References
    - [torch.library.infer_schema](https://pytorch.org/docs/stable/library.html#torch.library.infer_schema)
    """

    code = "CTX816"
    name = "operator-signature"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.rejected_operators if settings.torch.reach(2, 4) else ():
            notes = tuple(Related(span, "torch rejects this, too") for span in each.others)
            fact, remedy = _words(each)
            error = "RuntimeError" if each.reason is RejectedPart.UNREADABLE_DEFAULT else "ValueError"
            yield Finding(each.span, f"{fact}; it raises {error} at import. {remedy}.", related=notes)


def _words(each: RejectedOperator) -> tuple[str, str]:
    """What is wrong, and what to write."""
    short = _is_short(each.written)
    shown = f"`{each.written}`" if short else "a type"
    operator, name = f"the operator `{each.function}`", f"`{each.parameter}`"
    remedy = f"Write `{each.instead}`" if each.instead else "Use a type that torch supports"
    match each.reason:
        case RejectedPart.KIND:
            what = "is positional-only, or takes any number of arguments"
            return f"{name} of {operator} {what}", "Name each parameter, and drop `/`"
        case RejectedPart.MISSING if each.parameter:
            return f"{name} of {operator} has no annotation", "Add its type"
        case RejectedPart.MISSING:
            return f"The operator `{each.function}` has no return annotation", "Add one, `None` for no result"
        case RejectedPart.DEFAULT:
            default = shown if short else "a list or tuple"
            return f"{name} of {operator} has the default {default}, which torch does not support", "Drop the default"
        case RejectedPart.UNREADABLE_DEFAULT:
            default = shown if short else "a text"
            what = f"has the default {default}, which torch cannot read in a schema"
            return f"{name} of {operator} {what}", remedy if each.instead else "Drop the default"
        case RejectedPart.QUOTED:
            whose = name if each.parameter else "The result"
            what = "is annotated with a name in quotes, of which torch sees the string"
            return f"{whose} of {operator} {what}", "Drop the quotes"
        case RejectedPart.NOT_IMPORTED:
            whose = name if each.parameter else "The result"
            what = f"is annotated with `{each.instead}`, which is imported only under `TYPE_CHECKING`"
            return f"{whose} of {operator} {what}", "Import it at run time"
        case RejectedPart.TEXT:
            remedy = f"Write `mutates_args={each.instead}`" if each.instead else "Write a tuple of names"
            return f"`mutates_args` of {operator} is a string, but not `unknown`", remedy
        case RejectedPart.UNKNOWN_NAME:
            return f"`mutates_args` of {operator} names {name}, which is no parameter", "Name a parameter, or drop it"
        case RejectedPart.NOT_WRITABLE:
            return f"`mutates_args` of {operator} names {name}, which is not a tensor", "Drop the name"
    if each.parameter:
        return f"{name} of {operator} is annotated as {shown}, which torch does not support there", remedy
    whose, what = ("The result", shown) if short or not _is_short(each.element) else _element_of(each)
    return f"{whose} of {operator} is annotated as {what}, which torch does not support there", remedy


def _is_short(code: str) -> bool:
    """Whether a message can show a type."""
    return 0 < len(code) <= _LONGEST and "`" not in code


def _element_of(each: RejectedOperator) -> tuple[str, str]:
    return "An element of the result", f"`{each.element}`"
