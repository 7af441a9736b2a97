"""Plant a defect in a clean Function, let ctxlint fix it, and compare with the original.

Each case changes the source of a clean Function in one way. The fixed source must be the original again, compared as
``ast``; where a fix may choose names and order (saved tensors), it must give the same gradients and pass gradcheck.
Where the change takes the evidence away, ctxlint must stay silent.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.config.settings import Selection, Settings
from tests.linting import apply_fixes, lint, listing

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYTHING = Settings(command_line=Selection(select=("ALL",), ignore=("CTX110",)))


@dataclass(frozen=True)
class Clean:
    """A clean Function: its body after the class line, and arguments for ``apply`` as an expression."""

    name: str
    source: str
    arguments: str


def clean(name: str, body: str, arguments: str, head: str = "import torch\n") -> Clean:
    """A clean Function called ``Fn``; ``body`` holds its methods, indented by four."""
    return Clean(name, f"{head}\n\nclass Fn(torch.autograd.Function):\n{body.strip(chr(10))}\n", arguments)


X = "torch.rand(3, 4, dtype=torch.double).add(0.5).requires_grad_()"

FUNCTIONS = (
    clean(
        "exponential",
        """
    @staticmethod
    def forward(ctx, x):
        result = torch.exp(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result
""",
        X,
    ),
    clean(
        "product",
        """
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.mul(x, y)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x
""",
        f"{X}, {X}",
    ),
    clean(
        "scaled",
        """
    @staticmethod
    def forward(ctx, x, factor: int):
        ctx.factor = factor
        return torch.mul(x, factor)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None
""",
        f"{X}, 3",
    ),
    clean(
        "scaled first",
        """
    @staticmethod
    def forward(ctx, factor: int, x, mode: str):
        ctx.factor = factor
        if mode == "double":
            ctx.factor = factor * 2
        return torch.mul(x, ctx.factor)

    @staticmethod
    def backward(ctx, grad_output):
        return None, grad_output * ctx.factor, None
""",
        f"3, {X}, 'double'",
    ),
    clean(
        "affine",
        """
    @staticmethod
    def forward(ctx, x, weight, bias, flag: bool):
        ctx.save_for_backward(x, weight)
        return torch.addcmul(bias, x, weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output * weight
        grad_weight = grad_output * x
        grad_bias = grad_output.clone()
        return grad_x, grad_weight, grad_bias, None
""",
        f"{X}, {X}, {X}, True",
    ),
    clean(
        "two outputs",
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x), torch.cos(x)

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        (x,) = ctx.saved_tensors
        return grad_sin * torch.cos(x) - grad_cos * torch.sin(x)
""",
        X,
    ),
    clean(
        "once differentiable",
        """
    @staticmethod
    def forward(ctx, x, z: int):
        w = torch.mul(x, z)
        ctx.z = z
        return w

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return grad_output * ctx.z, None
""",
        f"{X}, 2",
        "import torch\nfrom torch.autograd.function import once_differentiable\n",
    ),
    clean(
        "outside autograd",
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.pow(x, 3)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x.detach() ** 2
""",
        X,
        "import torch\nfrom torch.autograd.function import once_differentiable\n",
    ),
    clean(
        "flattened",
        """
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return (torch.flatten(x) * 2).view(x.shape)

    @staticmethod
    def backward(ctx, grad_output):
        doubled = grad_output.reshape(-1) * 2
        return doubled.view(ctx.shape)
""",
        X,
    ),
    clean(
        "mixed precision",
        """
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x, factor: int):
        ctx.factor = factor
        return torch.mul(x, factor)

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None
""",
        f"{X}, 3",
        "import torch\nfrom torch.amp import custom_bwd, custom_fwd\n",
    ),
    clean(
        "setup_context",
        """
    @staticmethod
    def forward(x, power: int):
        return torch.pow(x, power)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, power = inputs
        ctx.save_for_backward(x)
        ctx.power = power

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.power * x ** (ctx.power - 1), None
""",
        f"{X}, 3",
    ),
    clean(
        "documented",
        '''
    """A class with a docstring, comments and blank lines."""

    @staticmethod
    def forward(ctx, x, dims: int = 1):
        """Forward.

        Several lines.
        """
        ctx.save_for_backward(x)  # for backward
        ctx.dims = dims

        return torch.square(x)  # the result

    @staticmethod
    def backward(ctx, grad_output):
        """Backward."""
        (x,) = ctx.saved_tensors  # what forward saved
        assert ctx.dims > 0  # what forward kept
        return (
            2 * grad_output * x,  # with respect to x
            None,  # dims
        )
''',
        f"{X}, 1",
    ),
    clean(
        "guarded",
        """
    @staticmethod
    def forward(ctx, x, y, scale: float, name: str):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        if name == "":
            raise ValueError("a name is needed")
        return torch.mul(x, y) * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        grad_x = grad_y = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * y * ctx.scale
        if ctx.needs_input_grad[1]:
            grad_y = grad_output * x * ctx.scale
        return grad_x, grad_y, None, None
""",
        f"{X}, {X}, 2.0, 'n'",
    ),
    clean(
        "early return",
        """
    @staticmethod
    def forward(ctx, x, steps: int):
        ctx.steps = steps
        ctx.save_for_backward(x)
        return torch.mul(x, steps) if steps else x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        if ctx.steps == 0:
            return grad_output.clone(), None
        (x,) = ctx.saved_tensors
        return grad_output * ctx.steps + 0 * x, None
""",
        f"{X}, 2",
    ),
)

BY_NAME = {each.name: each for each in FUNCTIONS}


@dataclass(frozen=True)
class Planted:
    """A clean Function with one defect. ``code`` is the rule that must report and fix it; None if nothing may be reported.

    ``same`` says that the fixed source is the original, or what it ``restores`` where that is more; else it must only
    compute the same.
    """

    clean: str
    what: str
    source: str
    code: str | None
    same: bool = True
    restores: str = ""


# ---------------------------------------------------------------------------------------------------------------------
# The defects


def methods_of(source: str) -> Iterator[tuple[str, int, int]]:
    """The name of each method, and the lines (from 0) from its first decorator to its end."""
    (class_,) = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    for node in class_.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, min(each.lineno for each in node.decorator_list) - 1, node.end_lineno or node.lineno


def with_lines(source: str, first: int, last: int, change: Any) -> str:
    """``source`` with some lines changed as one text."""
    lines = source.split("\n")
    return "\n".join([*lines[:first], *change("\n".join(lines[first:last])).split("\n"), *lines[last:]])


def without_staticmethod(each: Clean) -> Iterator[Planted]:
    for name, first, last in methods_of(each.source):
        changed = with_lines(each.source, first, last, lambda text: text.replace("    @staticmethod\n", "", 1))
        yield Planted(each.name, f"{name} is not static", changed, "CTX101")
    changed = each.source.replace("    @staticmethod\n", "")
    yield Planted(each.name, "nothing is static", changed, "CTX101")


def with_other_ctx(each: Clean) -> Iterator[Planted]:
    for name, first, last in methods_of(each.source):
        text = "\n".join(each.source.split("\n")[first:last])
        if "(ctx" not in text:
            continue
        for other, code in (("self", "CTX102"), ("cls", "CTX102"), ("context", "CTX109"), ("c", "CTX109")):
            changed = with_lines(each.source, first, last, lambda part, new=other: re.sub(r"\bctx\b", new, part))
            yield Planted(each.name, f"the ctx of {name} is called {other}", changed, code)


def with_a_receiver(each: Clean) -> Iterator[Planted]:
    for name, first, last in methods_of(each.source):
        if "(ctx" in "\n".join(each.source.split("\n")[first:last]):
            changed = with_lines(
                each.source,
                first,
                last,
                lambda part: part.replace("    @staticmethod\n", "", 1).replace("(ctx", "(self, ctx", 1),
            )
            yield Planted(each.name, f"{name} takes self and ctx", changed, "CTX101")


def returns_of_backward(source: str) -> list[ast.Return]:
    (class_,) = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    (backward,) = [node for node in class_.body if isinstance(node, ast.FunctionDef) and node.name == "backward"]
    return [node for node in ast.walk(backward) if isinstance(node, ast.Return)]


def replaced(source: str, node: ast.expr, text: str) -> str:
    """``source`` with one expression written otherwise. The sources are ASCII, so that columns are characters."""
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
    return source[:start] + text + source[end:]


def shown(elements: list[ast.expr]) -> str:
    """A tuple display as the sources write it; one element is written bare."""
    return ", ".join(ast.unparse(element) for element in elements)


def without_none(each: Clean) -> Iterator[Planted]:
    for returned in returns_of_backward(each.source):
        value = returned.value
        if not isinstance(value, ast.Tuple):
            continue
        for position, element in enumerate(value.elts):
            if isinstance(element, ast.Constant) and element.value is None:
                rest = value.elts[:position] + value.elts[position + 1 :]
                changed = replaced(each.source, value, shown(rest))
                # `documented` gives the input a default, and no call in view passes it: this may well be right.
                code = None if each.name == "documented" else "CTX203"
                yield Planted(each.name, f"no None at {position}, line {returned.lineno}", changed, code)
        nones = [element for element in value.elts if not isinstance(element, ast.Constant)]
        if 0 < len(nones) < len(value.elts) - 1:
            yield Planted(each.name, "no None at all", replaced(each.source, value, shown(nones)), "CTX203")


def with_a_list(each: Clean) -> Iterator[Planted]:
    for returned in returns_of_backward(each.source):
        if isinstance(returned.value, ast.Tuple):
            changed = replaced(each.source, returned.value, f"[{shown(returned.value.elts)}]")
            yield Planted(each.name, f"a list, line {returned.lineno}", changed, "CTX213")


def with_surplus_none(each: Clean) -> Iterator[Planted]:
    for returned in returns_of_backward(each.source):
        value = returned.value
        assert value is not None
        elements = value.elts if isinstance(value, ast.Tuple) else [value]
        for surplus in (1, 2):
            changed = replaced(each.source, value, shown([*elements, *([ast.Constant(None)] * surplus)]))
            yield Planted(each.name, f"{surplus} None too many, line {returned.lineno}", changed, "CTX206")


def with_saved_variables(each: Clean) -> Iterator[Planted]:
    if "saved_tensors" in each.source:
        yield Planted(each.name, "saved_variables", each.source.replace("saved_tensors", "saved_variables"), "CTX601")


def with_the_tuple_itself(each: Clean) -> Iterator[Planted]:
    found = re.search(r"\((\w+),\) = ctx\.saved_tensors", each.source)
    if found is not None and "clone(), None" not in each.source:
        changed = each.source.replace(found[0], f"{found[1]} = ctx.saved_tensors")
        yield Planted(each.name, "the tuple is taken for a tensor", changed, "CTX310")
        called = each.source.replace("ctx.saved_tensors", "ctx.saved_tensors()")
        yield Planted(each.name, "saved_tensors is called", called, "CTX310")


def read_twice(each: Clean) -> Iterator[Planted]:
    found = re.search(r"( +)(\w+), (\w+) = ctx\.saved_tensors\n", each.source)
    if found is not None:
        twice = f"{found[1]}{found[2]} = ctx.saved_tensors[0]\n{found[1]}{found[3]} = ctx.saved_tensors[1]\n"
        yield Planted(each.name, "read twice", each.source.replace(found[0], twice), "CTX309", same=False)


def with_decorators_swapped(each: Clean) -> Iterator[Planted]:
    if "once_differentiable\n    def" in each.source:
        changed = each.source.replace(
            "    @staticmethod\n    @once_differentiable\n", "    @once_differentiable\n    @staticmethod\n"
        )
        yield Planted(each.name, "decorators swapped", changed, "CTX105")


def without_once_differentiable(each: Clean) -> Iterator[Planted]:
    if "detach()" in each.source:
        unmarked = each.source.replace("    @once_differentiable\n", "")
        yield Planted(each.name, "not marked", unmarked, "CTX501")
        without_import = unmarked.replace("from torch.autograd.function import once_differentiable\n", "")
        yield Planted(each.name, "not marked and not imported", without_import, "CTX501")


def with_a_view_of_the_gradient(each: Clean) -> Iterator[Planted]:
    if "grad_output.reshape(" in each.source:
        changed = each.source.replace("grad_output.reshape(", "grad_output.view(")
        yield Planted(each.name, "the gradient is taken for contiguous", changed, "CTX502")


def with_legacy_names(each: Clean) -> Iterator[Planted]:
    legacy = each.source.replace("torch.autograd.Function", "torch.autograd.function.InplaceFunction")
    yield Planted(each.name, "an InplaceFunction", legacy, "CTX603")
    call = "\\g<0>\\g<1>ctx.mark_shared_storage((x, x))\n"
    shared = re.sub(r"( +)ctx\.save_for_backward\(.*\n", call, each.source)
    if shared != each.source:
        yield Planted(each.name, "shared storage", shared, "CTX603")
    for returned in returns_of_backward(each.source):
        value = returned.value
        assert value is not None
        first = value.elts[0] if isinstance(value, ast.Tuple) else value
        if not isinstance(first, ast.Constant):
            text = f"torch.autograd.Variable({ast.unparse(first)})"
            changed = replaced(each.source, first, text)
            yield Planted(each.name, f"a Variable, line {returned.lineno}", changed, "CTX603")


def with_stashes(each: Clean) -> Iterator[Planted]:
    """Each saved tensor, and all of them, stored as an attribute instead."""
    saving = re.search(r"( +)ctx\.save_for_backward\(([\w, ]+)\)(.*)\n", each.source)
    taking = re.search(r"( +)\(?([\w, ]+?),?\)? = ctx\.saved_tensors(.*)\n", each.source)
    if saving is None or taking is None:
        return
    saved, taken = saving[2].split(", "), taking[2].split(", ")
    choices = [[name] for name in saved] + ([saved] if len(saved) > 1 else [])
    for stashed in choices:
        kept = [name for name in saved if name not in stashed]
        left = [name for name, source in zip(taken, saved) if source in kept]
        lines = [f"{saving[1]}ctx.save_for_backward({', '.join(kept)}){saving[3]}\n"] if kept else []
        lines += [f"{saving[1]}ctx.{name} = {name}\n" for name in stashed]
        unpacking = f"{', '.join(left)}" if len(left) > 1 else f"({left[0]},)" if left else ""
        taker = f"{taking[1]}{unpacking} = ctx.saved_tensors{taking[3]}\n" if left else ""
        changed = each.source.replace(saving[0], "".join(lines)).replace(taking[0], taker)
        start = changed.index("    def backward")
        head, tail = changed[:start], changed[start:]
        for name, source in zip(taken, saved):
            if source in stashed:
                tail = re.sub(rf"(?<![\w.]){name}(?!\w)", f"ctx.{source}", tail)
        yield Planted(each.name, f"{' and '.join(stashed)} on ctx", head + tail, "CTX301", same=False)


def with_an_unread_save(each: Clean) -> Iterator[Planted]:
    """The first input or the result saved as well, before or after the others."""
    saving = re.search(r"ctx\.save_for_backward\(([\w, ]+)\)", each.source)
    taking = re.search(r"\(?([\w, ]+?),?\)? = ctx\.saved_tensors", each.source)
    if saving is None or taking is None:
        return
    for what, saved, taken in (
        ("in front", f"x, {saving[1]}", f"unread, {taking[1].strip()}"),
        ("behind", f"{saving[1]}, x", f"{taking[1].strip()}, unread"),
    ):
        changed = each.source.replace(saving[0], f"ctx.save_for_backward({saved})")
        changed = changed.replace(taking[0].strip(), f"{taken} = ctx.saved_tensors")
        yield Planted(each.name, f"one more is saved {what}", changed, "CTX312")


def with_one_half_of_the_pair(each: Clean) -> Iterator[Planted]:
    for name in ("custom_fwd", "custom_bwd"):
        changed = each.source.replace(f'    @{name}(device_type="cpu")\n', "")
        if changed != each.source:
            yield Planted(each.name, f"no {name}", changed, "CTX106")
            imported = changed.replace("import custom_bwd, custom_fwd", f"import {_OTHER_HALF[name]}")
            yield Planted(each.name, f"no {name}, nor its import", imported, "CTX106")


_OTHER_HALF = {"custom_fwd": "custom_bwd", "custom_bwd": "custom_fwd"}


def with_other_flags(each: Clean) -> Iterator[Planted]:
    first, second = "if ctx.needs_input_grad[0]:\n", "        if ctx.needs_input_grad[1]:\n"
    if first not in each.source or second not in each.source:
        return
    same = each.source.replace("needs_input_grad[1]", "needs_input_grad[0]")
    yield Planted(each.name, "one flag for both", same, "CTX209")
    yield Planted(each.name, "one test for both", each.source.replace(second, ""), "CTX209")
    swapped = re.sub(r"_grad\[(\d)\]", lambda found: f"_grad[{1 - int(found[1])}]", each.source)
    yield Planted(each.name, "the flags are swapped", swapped, "CTX209")


def with_unbound_gradients(each: Clean) -> Iterator[Planted]:
    changed = each.source.replace("        grad_x = grad_y = None\n", "")
    if changed != each.source:
        yield Planted(each.name, "nothing is bound to None first", changed, "CTX210")
        for name in ("grad_x", "grad_y"):
            one = each.source.replace("grad_x = grad_y = None", f"{name} = None")
            yield Planted(each.name, f"only {name} is bound to None first", one, "CTX210", same=False)


def with_an_instance(each: Clean) -> Iterator[Planted]:
    changed = f"\n\nresult = Fn().apply({each.arguments})\n"
    yield Planted(each.name, "an instance is made for apply", each.source + changed, "CTX703", same=False)


def with_keywords(each: Clean) -> Iterator[Planted]:
    """The last argument of ``apply``, or all of them in reverse order, passed by keyword."""
    (class_,) = [node for node in ast.parse(each.source).body if isinstance(node, ast.ClassDef)]
    (forward,) = [node for node in class_.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    names = [arg.arg for arg in forward.args.args if arg.arg != "ctx"]
    keywords = [f"{name}={name}" for name in names]
    head = f"{each.source}\n\ndef call({', '.join(names)}):\n    return Fn.apply("
    original = f"{head}{', '.join(names)})\n"
    last = f"{head}{', '.join([*names[:-1], keywords[-1]])})\n"
    yield Planted(each.name, "the last argument by keyword", last, "CTX702", restores=original)
    turned = f"{head}{', '.join(reversed(keywords))})\n"
    yield Planted(each.name, "all by keyword, turned round", turned, "CTX702", restores=original)


def in_one_line(each: Clean) -> Iterator[Planted]:
    """Tabs, CRLF and a missing final newline around a missing decorator."""
    name, first, last = next(methods_of(each.source))
    changed = with_lines(each.source, first, last, lambda text: text.replace("    @staticmethod\n", "", 1))
    yield Planted(each.name, f"{name} is not static, CRLF", changed.replace("\n", "\r\n"), "CTX101")
    yield Planted(each.name, f"{name} is not static, tabs", changed.replace("    ", "\t"), "CTX101")
    yield Planted(each.name, f"{name} is not static, no final newline", changed.rstrip("\n"), "CTX101")


DEFECTS = (
    without_staticmethod,
    with_other_ctx,
    with_a_receiver,
    without_none,
    with_a_list,
    with_surplus_none,
    with_saved_variables,
    with_the_tuple_itself,
    read_twice,
    with_decorators_swapped,
    without_once_differentiable,
    with_a_view_of_the_gradient,
    with_legacy_names,
    with_stashes,
    with_an_unread_save,
    with_one_half_of_the_pair,
    with_other_flags,
    with_unbound_gradients,
    with_an_instance,
    with_keywords,
    in_one_line,
)

CASES = [planted for each in FUNCTIONS for defect in DEFECTS for planted in defect(each)]


# ---------------------------------------------------------------------------------------------------------------------
# The tests


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 200
    assert len({(each.clean, each.what) for each in CASES}) == len(CASES)


@pytest.mark.parametrize("each", FUNCTIONS, ids=lambda each: each.name)
def test_the_originals_are_clean(each: Clean) -> None:
    assert lint(each.source) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.clean}: {case.what}")
def test_planted(case: Planted) -> None:
    """The defect is found; the fixed source is the original again, or computes the same."""
    original = BY_NAME[case.clean]
    diagnostics = lint(case.source, settings=EVERYTHING)
    codes = {each.code for each in diagnostics}
    if case.code is None:
        assert not codes, listing(diagnostics)
        return
    assert case.code in codes or (case.code == "CTX301" and "CTX302" in codes), listing(diagnostics)
    settings = EVERYTHING._replace(command_line=Selection(select=tuple(sorted(codes)), ignore=("CTX110",)))
    fixed = apply_fixes(case.source, "planted.py", settings, unsafe=True)
    assert apply_fixes(fixed, "planted.py", settings, unsafe=True) == fixed
    if case.same:
        expected = case.restores or original.source
        expected = expected.replace("    ", "\t") if "\t" in case.source else expected
        assert ast.dump(ast.parse(fixed)) == ast.dump(ast.parse(expected)), fixed
    same_gradients(original, fixed)


@pytest.mark.parametrize("each", FUNCTIONS, ids=lambda each: each.name)
def test_forward_is_split(each: Clean) -> None:
    """Statements about ctx move to ``setup_context``; values and gradients stay the same."""
    settings = Settings(command_line=Selection(select=("CTX110",)))
    fixed = apply_fixes(each.source, "split.py", settings, unsafe=True)
    if each.name in ("mixed precision", "scaled first", "setup_context"):
        # a decorator of its own; a value that depends on the path; split already
        assert fixed == each.source
        return
    assert "def setup_context(ctx, inputs, output):" in fixed
    assert lint(fixed, settings=EVERYTHING) == lint(each.source, settings=EVERYTHING) == []
    assert lint(fixed, settings=settings) == []
    same_gradients(each, fixed)


def same_gradients(original: Clean, fixed: str) -> None:
    """Both give the same values and gradients for the same inputs, and the fixed one passes gradcheck."""
    import torch

    results = []
    for source in (original.source, fixed):
        space: dict[str, Any] = {}
        exec(compile(source, "planted.py", "exec", dont_inherit=True), space)
        torch.manual_seed(0)
        arguments = eval(f"({original.arguments},)", {"torch": torch})
        outputs = space["Fn"].apply(*arguments)
        total = sum(each.sum() * (number + 1) for number, each in enumerate(_tuple(outputs)))
        total.backward()
        gradients = [each.grad for each in arguments if isinstance(each, torch.Tensor)]
        results.append((_tuple(outputs), gradients))
        if source is fixed:
            assert torch.autograd.gradcheck(space["Fn"].apply, arguments)
    for mine, its in zip(*(values for values, _ in results)):
        assert torch.equal(mine, its)
    for mine, its in zip(*(gradients for _, gradients in results)):
        assert torch.equal(mine, its)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
