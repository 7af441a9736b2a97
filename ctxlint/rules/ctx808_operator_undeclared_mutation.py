"""CTX808: a custom operator modifies an input that ``mutates_args`` does not name."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Related
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import elsewhere
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import UndeclaredWrite


class OperatorUndeclaredMutation(Rule[SourceFile]):
    """
    ## What it does
    Reports a function under `torch.library.custom_op` or `triton_op` that modifies an input in place, also one that may be
    None, although its `mutates_args` is empty, or names only others. The same applies to `infer_schema(f, mutates_args=[])`, to
    `custom_op("ns::f", f, mutates_args=())`, also in a function of the project that hands its arguments on to them, and to a
    schema as a string without `(a!)`.

    ## Why is this bad?
    `mutates_args` must name every input that the operator modifies; torch does not check it. An operator without results
    that modifies nothing has no effect, so `torch.compile` removes its calls if a fake of it is registered: the compiled
    function silently computes with the old values. Of an operator with results, it removes the calls whose result nothing uses.
    If some inputs are named, the calls stay, but `torch.compile` takes the others for unchanged: where it moves or
    reuses an operation, that gets the values that they had before.
    `torch.library.opcheck` raises.

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
    There is no fix: with the name, the operator can no longer have a `register_autograd`. One that has a gradient must return
    new tensors instead.

    ## Known limits
    A function of another file that registers operators is known where its name holds `custom_op`, or its parameter is
    called `mutates_args`. Not reported for an operator that has `tags`, a `schema` or further decorators, for a `triton_op`
    or a call that names another input, if the write is in code that is not analysed, or if a later `copy_` may restore what was there.

    ## References
    - [torch.library.custom_op](https://pytorch.org/docs/stable/library.html#torch.library.custom_op)
    """

    code = "CTX808"
    name = "operator-undeclared-mutation"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.undeclared_writes if settings.torch.reach(2, 4) else ():
            dropped = "its calls" if each.returns_nothing else "calls whose result is unused"
            or_copy = "" if each.returns_nothing else ", or return new tensors if it has a gradient"
            if each.named:
                yield Finding(each.span, _partly_declared(each))
                continue
            declaration = "its schema does not say so" if each.declared else f"its `{each.keyword}` is empty"
            fact = f"`{each.function}` modifies {quoted(each.parameters)} in place although {declaration}"
            once = "" if each.has_fake else "with a fake, "
            message = f"{fact}; {once}`torch.compile` silently drops {dropped}. Write {_remedy(each)}"
            yield Finding(each.span, fitting(f"{message}{or_copy}.", f"{message}."), related=_notes(file, each))


def _partly_declared(write: UndeclaredWrite) -> str:
    """What ``torch.compile`` does where the operator names other inputs: it does not drop the calls."""
    fact = f"`{write.function}` modifies {quoted(write.parameters)} in place, which its `{write.keyword}` does not name"
    values = "its old values" if len(write.parameters) == 1 else "their old values"
    once = "" if write.has_fake else "with a fake, "
    effect = f"{once}`torch.compile` silently computes with {values} where it moves or reuses operations"
    added = " and ".join(f'`"{name}"`' for name in write.parameters)
    return fitting(f"{fact}; {effect}. Add {added} to it.", f"{fact}; {effect}. Name all of them.")


def _remedy(write: UndeclaredWrite) -> str:
    """The declaration that is right."""
    if write.declared:
        marked = (
            each.replace("Tensor", f"Tensor({letter}!)", 1) for letter, each in zip(ascii_lowercase, write.declared)
        )
        return f"{quoted(marked)} in the schema"
    names = ", ".join(f'"{name}"' for name in write.parameters)
    if write.keyword != "mutates_args" or write.written_at is not None:
        return f"`{write.keyword}=[{names}]`"
    return f"`{write.keyword}=({names}{',' if len(write.parameters) == 1 else ''})`"


def _notes(file: SourceFile, each: UndeclaredWrite) -> tuple[Related, ...]:
    """The write, and the schema, if the finding is somewhere else."""
    places = [(each.written_at, "modified here"), (each.declared_at, "the schema")]
    known = [(*place, text) for place, text in places if place is not None]
    return tuple(Related(span, text, path=elsewhere(file.source, path)) for path, span, text in known)
