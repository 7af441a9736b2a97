"""CTX801: ``setup_context`` of a custom operator with parameter names that torch does not use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.operator_parameters import rename_as_expected
from ctxlint.model.function import ParameterKind, SourceFile
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method


class OperatorSetupContextNames(Rule[SourceFile]):
    """
    ## What it does
    Reports a `setup_context` for `register_autograd` whose parameters are not named `ctx`, `inputs` and `output`, with
    `keyword_only_inputs` after `inputs` if the operator has keyword-only parameters.

    ## Why is this bad?
    Torch calls a Function's `setup_context` by position, but that of a custom operator by keyword. With other names,
    the first call that needs a gradient raises `TypeError: setup_context() got an unexpected keyword argument
    'output'`.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    def setup_context(ctx, inputs, outputs):
        pass


    def backward(ctx, grad_output):
        return grad_output * 2


    double.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    def setup_context(ctx, inputs, output):
        pass


    def backward(ctx, grad_output):
        return grad_output * 2


    double.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    Safe if one parameter has a wrong name, or the ctx and one other: only one correction is possible. Also safe:
    inserting `keyword_only_inputs`, and removing a parameter that the body does not use. Unsafe if several are renamed
    by position, or if the project uses the function in other ways too. There is no fix if the positions are ambiguous,
    or if the function serves operators with and without keyword-only parameters.

    ## Known limits
    Only functions without decorators are checked. If a function is defined more than once, only the last definition is
    checked.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX801"
    name = "operator-setup-context-names"
    subject = SourceFile
    fix = FixAvailability.SOMETIMES

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_setups if settings.torch.reach(2, 4) else ():
            setup = operator.setup_context
            if setup is None or any(param.kind is ParameterKind.KEYWORDS for param in setup.params):
                continue
            expected = ["ctx", "inputs", *(["keyword_only_inputs"] if operator.keyword_only else []), "output"]
            names = {param.name for param in setup.params if param.kind is not ParameterKind.VARIADIC}
            required = {param.name for param in setup.params if param.required}
            taken = quoted(param.name for param in setup.params) or "no parameters"
            if set(expected) <= names and required <= set(expected):
                continue
            yield Finding(
                operator.span(setup.node.name),
                f"`{setup.node.name.value}` of `{operator.name}` takes {taken}; torch passes its arguments by keyword and "
                "raises TypeError in a call that needs a gradient. "
                f"{_remedy(setup, names, expected)}.",
                fix=rename_as_expected(file, operator, expected),
            )


def _remedy(setup: Method, names: set[str], expected: list[str]) -> str:
    """What to write: a single wrong name is renamed, also where the body reads it."""
    wrong, missing = [*names - {*expected}], [each for each in expected if each not in names]
    if len(wrong) == len(missing) == 1:
        return f"Rename `{wrong[0]}` to `{missing[0]}`"
    return f"Write `{setup.node.name.value}({', '.join(expected)})`"
