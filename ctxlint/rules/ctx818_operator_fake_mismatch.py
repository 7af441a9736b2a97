"""CTX818: the fake of a custom operator takes other arguments, or returns other tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.diagnostic import Related
from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.model.function import FakeFault, SourceFile
from ctxlint.model.index.result_layouts import CONTIGUOUS, DEFAULT, TRANSPOSED
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import elsewhere
from ctxlint.rules.wording import counted, fitting, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import FakeMismatch


class OperatorFakeMismatch(Rule[SourceFile]):
    """
    ## What it does
    Reports a fake, registered with `register_fake`, that does not take the arguments of its operator, or takes them in
    another order, or for a tensor what is a number there, or that returns another number of tensors, or a tensor with other sizes, another dtype or other strides than the operator's.
    And a name in a fake that nothing defines.

    ## Why is this bad?
    Calls in eager mode work: torch runs the fake only when it traces the operator, and only then an undefined name raises
    NameError. `torch.export` raises TypeError,
    and `torch.compile` breaks the graph, for arguments that the fake does not take. Torch also omits trailing arguments
    that are the operator's defaults, so that the fake needs them as well. If the fake returns too many tensors, the
    process crashes; if it returns too few, compiled code gets no more, or torch breaks the graph where it unpacks them.
    Code that inductor compiles asserts the sizes and strides of the fake's result, and relies on its dtype: a wrong one
    raises in some programs, and rounds to it in others.

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
    Unsafe: parameters in another order than those of the operator are reordered; the fake may use them in the order that
    torch passes them. There is no fix for anything else.

    ## Known limits
    Only operators that a single decorator `custom_op` or `triton_op` defines are judged, without `tags` and `schema`, and
    fakes under a single decorator. Where the operator does not return a tuple that is written out, its annotation may be
    wrong instead, as torch does not compare it with what is returned. Sizes, dtypes and layouts are compared where the statements of both functions show
    them: those of new tensors, conversions, transposed views, sums and matrix products, without helpers; of branches, those that return. What the
    operator tests or asserts may never differ, and is not reported. `torch.library.opcheck` compares all of them for
    given arguments.

    ## References
    - [torch.library.register_fake](https://pytorch.org/docs/stable/library.html#torch.library.register_fake)
    - [torch.library.opcheck](https://pytorch.org/docs/stable/library.html#torch.library.opcheck)
    """

    code = "CTX818"
    name = "operator-fake-mismatch"
    subject = SourceFile
    fix = FixAvailability.SOMETIMES

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.fake_mismatches:
            yield Finding(each.span, _message(each), _fix(file, each), _notes(file, each))


def _fix(file: SourceFile, each: FakeMismatch) -> Fix | None:
    """The parameters of a fake in the order of the operator's."""
    if not each.ordered or len(each.spans) < len(each.names):
        return None
    places = [(file.source.offset(span.start), file.source.offset(span.end)) for span in each.spans]
    code = {name: file.source.text[start:end] for name, (start, end) in zip(each.names, places, strict=True)}
    edits = [Edit(*place, code[name]) for place, name in zip(places, each.ordered, strict=True)]
    moved = tuple(edit for edit, name in zip(edits, each.names, strict=True) if edit.content != code[name])
    return Fix(f"Write the parameters in the order of `{each.function}`", moved, Applicability.UNSAFE)


def _notes(file: SourceFile, each: FakeMismatch) -> tuple[Related, ...]:
    """The return of the operator that differs, if others do not."""
    if each.on_a_path is None:
        return ()
    path, span = each.on_a_path
    return (Related(span, f"`{each.function}` returns it here", path=elsewhere(file.source, path)),)


def _message(each: FakeMismatch) -> str:
    fake, names = f"The fake of `{each.function}`", _named(each.names)
    match each.fault:
        case FakeFault.NOT_TAKEN:
            return _about_untaken(each)
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
            *missing, other = each.names
            what = f"{fake} lacks {quoted(missing)}, and its `{other}` gets {_AS_ARGUMENT[len(missing) > 1]}"
            remedy = "Write the parameters of the operator" if each.stray else f"Add {them(missing)} before `{other}`"
            return f"{what}; it computes with the wrong ones, or raises, when torch traces it. {remedy}."
        case FakeFault.ORDER:
            what = f"{fake} has its parameters in another order than the operator; torch passes arguments by position"
            wrong = "so that it computes with the wrong ones, or raises, when torch traces it"
            order = f"Write {_listed(each.ordered)} instead of {_listed(each.names)}"
            return fitting(f"{what}, {wrong}. {order}.", f"{what}, {wrong}. Reorder them.")
        case FakeFault.NO_TENSOR:
            element, parameter, kind = each.names
            what = f"{fake} takes `{element}` for a tensor, but that is the argument for `{parameter}: {kind}` of the operator"
            rest = f"`*{element.partition('[')[0]}`"
            return f"{what}; it raises when torch traces it. Write the parameters of the operator instead of {rest}."
        case FakeFault.RESULTS if each.annotated:
            what = f"{fake} returns {_tensors(each.returned)}, but the annotation of the operator says {_tensors(each.expected)}"
            return f"{what}; {_effect_by_annotation(each)}. Correct whichever is wrong."
        case FakeFault.RESULTS:
            return (
                f"{fake} returns {_tensors(each.returned)} but the operator {_tensors(each.expected)}; {_effect(each)}."
            )
        case FakeFault.DIMENSIONS | FakeFault.SIZES:
            return _about_sizes(each)
        case FakeFault.DTYPE:
            return _about_dtypes(each)
        case FakeFault.LAYOUT:
            return _about_layouts(each)
    return _about_undefined(each)


def _about_untaken(each: FakeMismatch) -> str:
    """What happens where the operator passes more arguments than the fake takes, perhaps as one before them is missing."""
    fake, names = f"The fake of `{each.function}`", _named(each.names)
    untaken = quoted(each.untaken, "or") if len(each.untaken) <= _MOST_NAMES else f"one of the last {len(each.untaken)}"
    if not each.instead:
        passed = them(each.names) if each.names == each.untaken else untaken
        when = f" if a call passes {passed}" if each.sometimes else ""
        what = f"{fake} does not take {names}, which the operator has; {_RAISES}{when}"
        return (
            f"{what}. {'Write those of the operator' if each.stray else f'Add {them(each.names)} to its parameters'}."
        )
    when = f" if a call passes {untaken}" if each.sometimes else ""
    what = f"{fake} lacks {names}, and its `{each.instead}` gets {_AS_ARGUMENT[len(each.names) > 1]}"
    remedy = f"Add {them(each.names)} before `{each.instead}`"
    short = "`torch.export` raises TypeError, and `torch.compile` raises or breaks the graph"
    return fitting(f"{what}; {_RAISES}{when}. {remedy}.", f"{what}; {short}{when}. {remedy}.")


def _about_undefined(each: FakeMismatch) -> str:
    """What happens where a fake reads a name that nothing defines."""
    name, *meant = each.names
    remedy = f"Write `{meant[0]}`, the name that it has here" if meant else "Define it"
    runs = " if this line runs" if each.sometimes else ""
    what = f"`{name}` in the fake of `{each.function}` is not defined"
    return f"{what}; it raises NameError when torch traces the operator{runs}. {remedy}."


def _about_sizes(each: FakeMismatch) -> str:
    """What a fake says wrongly about sizes."""
    remedy = "Return the same shape on every path" if each.on_a_path else "Return a tensor of that shape"
    if each.fault is FakeFault.SIZES:
        theirs = (
            "the last size of one that the operator returns" if each.on_a_path else "the last size of the operator's"
        )
        what = f"{_its(each)} the shape of `{each.here}`, but {theirs} is `{each.there}`"
        return f"{what}; compiled code raises{_when(each)} unless they agree. {remedy}."
    what = f"{_its(each)} {each.here}, but {_the_operators(each)} has {each.there}"
    return f"{what}; compiled code raises{_when(each)}. {remedy}."


def _about_dtypes(each: FakeMismatch) -> str:
    """What a fake says wrongly about a dtype."""
    here, there = (f"torch.{text}" if text else f"{each.of}.dtype" for text in (each.here, each.there))
    when = f" if `{each.of}` has another dtype" if each.of else ""
    what = f"{_its(each)} the dtype `{here}`, but {_the_operators(each)} has `{there}`"
    remedy = "Use one dtype on every path" if each.on_a_path else f"Pass `dtype={there}`"
    if {each.here, each.there} & {DEFAULT} and not each.on_a_path:
        remedy = "Pass the same `dtype` in both"
    effect = "compiled code that computes with it raises or is silently wrong"
    return f"{what}; {effect}{when or _when(each)}. {remedy}."


def _about_layouts(each: FakeMismatch) -> str:
    """What a fake says wrongly about strides."""
    here, there = (_LAYOUTS.get(text, f"the strides of `{each.of}`") for text in (each.here, each.there))
    raises = "code that inductor compiles raises AssertionError"
    if each.of:
        raises += f" {'unless' if TRANSPOSED in (each.here, each.there) else 'if'} `{each.of}` is transposed"
    new = each.of and each.there == CONTIGUOUS
    remedy = f"Return `{each.of}.new_empty(...)`" if new else "Return the same layout from both"
    return f"{_its(each)} {here}, but {_the_operators(each)} has {there}; {raises}. {remedy}."


def _when(each: FakeMismatch) -> str:
    """Where a fake is wrong about a single path only."""
    return " on that path" if each.on_a_path else ""


def _listed(names: tuple[str, ...]) -> str:
    return f"`{', '.join(names)}`"


_LAYOUTS = {CONTIGUOUS: "contiguous strides", TRANSPOSED: "transposed strides"}


def _the_operators(each: FakeMismatch) -> str:
    """The result of the operator that differs: of one path, if others agree."""
    return "one that the operator returns" if each.on_a_path else "the operator's"


def _its(each: FakeMismatch) -> str:
    """The subject: the result of the fake."""
    result = "The result" if each.at is None else f"Result {each.at}"
    return f"{result} of the fake of `{each.function}` has"


def _effect(each: FakeMismatch) -> str:
    """What torch does when it traces the operator, and what to return."""
    remedy = f"Return {_tensors(each.expected)}"
    if each.expected is None or each.returned is None:
        return f"`torch.compile` raises RuntimeError. {remedy}"
    if each.returned > each.expected:
        return f"`torch.compile` kills the process. {remedy}"
    return f"`torch.compile` returns only {each.returned}, or breaks the graph. {remedy}"


def _effect_by_annotation(each: FakeMismatch) -> str:
    """What torch does when it traces an operator of which only the annotation is known: it may return fewer tensors."""
    if each.expected is None or each.returned is None or each.returned > each.expected:
        return "`torch.compile` kills the process"
    return f"if it returns {each.expected}, `torch.compile` returns only {each.returned}, or breaks the graph"


def _tensors(number: int | None) -> str:
    return "a tensor" if number is None else f"a tuple of {number}"


def _named(names: tuple[str, ...]) -> str:
    return quoted(names) if len(names) <= _MOST_NAMES else counted(len(names), "parameter")


_MOST_NAMES = 3
_AS_ARGUMENT = ("that argument", "the first of these arguments")
_RAISES = "`torch.export` raises TypeError, and `torch.compile` breaks the graph or raises (`fullgraph=True`)"
