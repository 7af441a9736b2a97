"""The cost of hostile files, counted in steps of the analysis or calls of Python functions, never in seconds."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.cli import main
from ctxlint.config.settings import Selection, Settings
from ctxlint.effort import STEPS_OF_A_CLASS, STEPS_OF_A_FILE, Effort, EffortExceeded, spend, steps
from ctxlint.fixes import apply
from ctxlint.run import workers
from ctxlint.run.in_project import forget_other_files
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source
from tests.growth import calls_in
from tests.linting import lint_everything

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "import torch\nfrom torch.autograd import Function\n\n\n"
IND = "        "


def function(forward: str, backward: str = f"{IND}return g\n", *, name: str = "F", base: str = "Function") -> str:
    """A Function with these lines in its methods."""
    return (
        f"class {name}({base}):\n    @staticmethod\n    def forward(ctx, x):\n{forward}\n"
        f"    @staticmethod\n    def backward(ctx, g):\n{backward}\n"
    )


def work(do: Callable[[], object]) -> int:
    """The number of steps of the analysis."""
    before = steps.spent
    do()
    return steps.spent - before


def given_up(text: str) -> list[int]:
    """The lines of the classes that are too complex."""
    return [each.span.start.line for each in lint_everything(text) if each.code == "CTX903"]


# ---------------------------------------------------------------------------------------------------------------------
# What grows with the file, and no faster


def diamond(levels: int) -> str:
    text = HEAD + "class A0(Function):\n    pass\n\n\nclass B0(Function):\n    pass\n\n\n"
    for at in range(1, levels):
        text += "".join(f"class {each}{at}(A{at - 1}, B{at - 1}):\n    pass\n\n\n" for each in "AB")
    return text


def circle(classes: int) -> str:
    return HEAD + "".join(
        f"class C{at}(C{(at + 1) % classes}, C{(at + 2) % classes}, Function):\n    pass\n\n\n" for at in range(classes)
    )


def conditional_names(names: int) -> str:
    bound = "".join(f"if c{other}:\n    a{at} = a{at + 1}\n" for at in range(8) for other in range(names // 8))
    return HEAD + function(f"{IND}y = a0(x)\n{IND}return y\n") + bound


def unpackings(times: int) -> str:
    again = f"{IND}a, b = ctx.saved_tensors\n" * times
    return HEAD + function(f"{IND}ctx.save_for_backward(x, x)\n{IND}return x\n", f"{again}{IND}return a\n")


def doubled(times: int) -> str:
    return HEAD + function(f"{IND}z = (x, x)\n" + f"{IND}z = z + z\n" * times + f"{IND}return z\n")


def starred(times: int) -> str:
    return HEAD + function(f"{IND}z = [x, x]\n" + f"{IND}z = [*z, *z]\n" * times + f"{IND}return z\n")


def extended(times: int) -> str:
    return HEAD + function(f"{IND}z = [x]\n" + f"{IND}z.extend(z)\n" * times + f"{IND}return z\n")


def nested(times: int) -> str:
    return HEAD + function(
        f"{IND}y = z = x\n" + f"{IND}z = (z, z)\n{IND}y = (y, y)\n" * times + f"{IND}w = z if x else y\n{IND}return w\n"
    )


def squared(times: int) -> str:
    return HEAD + function(f"{IND}z = 99999\n" + f"{IND}z = z * z\n" * times + f"{IND}return z\n")


def large_constant(uses: int) -> str:
    return HEAD + f"Z = ({'1, ' * uses})\n" + function(f"{IND}y = Z\n" * uses + f"{IND}return x\n")


def instances(times: int) -> str:
    return HEAD + function(f"{IND}return x\n") + "".join(f"f{at} = F()\ny = f{at}(1)\n" for at in range(times))


def instances_of_one_name(times: int) -> str:
    return HEAD + function(f"{IND}return x\n") + "f = F()\nself.f = F()\nf(1)\nself.f(1)\n" * times


def instances_with_arguments(times: int) -> str:
    return HEAD + function(f"{IND}return x\n") + "".join(f"f{at} = F(1)\n" for at in range(times))


def instances_with_state(times: int) -> str:
    state = f"class F(Function):\n    def __init__(self, n):\n{IND}self.n = n\n"
    methods = function(f"{IND}return x\n").partition("\n")[2]
    return HEAD + state + methods + "\nF.apply(1)\n" + "keep(F(1))\n" * times


def calls_under_tests(times: int) -> str:
    body = "".join(f"    if x:\n        y{at} = F.apply(x)\n" for at in range(times))
    return HEAD + function(f"{IND}return x\n") + "def f(x):\n" + body


def calls_in_one_statement(times: int) -> str:
    return HEAD + function(f"{IND}return x\n") + f"def f(x):\n    return [{'F.apply(x), ' * times}]\n"


def kept(attributes: int) -> str:
    names = [f"a{at}" for at in range(attributes)]
    computed = "".join(f"{IND}{name} = x * {at}\n" for at, name in enumerate(names))
    stored = "".join(f"{IND}ctx.{name} = {name}\n" for name in names)
    read = "".join(f"{IND}g = g * ctx.{name}\n" for name in names)
    return HEAD + function(f"{computed}{stored}{IND}return x\n", f"{read}{IND}return g\n")


def rebound(times: int) -> str:
    made = f"{IND}y = x.exp()\n" + f"{IND}y = y * x\n" * times
    return HEAD + function(f"{made}{IND}return y\n", f"{IND}return g.view(-1, 4).sum(0)\n")


@pytest.mark.parametrize(
    ("program", "size"),
    [
        (rebound, 20),
        (unpackings, 100),
        (doubled, 100),
        (starred, 100),
        (extended, 100),
        (nested, 100),
        (squared, 40),
        (large_constant, 100),
        (instances, 50),
        (instances_of_one_name, 50),
        (instances_with_arguments, 50),
        (instances_with_state, 50),
        (calls_under_tests, 50),
        (calls_in_one_statement, 50),
    ],
)
def test_twice_the_text_is_about_twice_the_work(program: Callable[[int], str], size: int) -> None:
    lint_everything(program(2))  # imports what is needed, fills what is kept
    once, twice = (calls_in(partial(lint_everything, program(n)), builtins=False) for n in (size, 2 * size))
    assert twice < 2.7 * once, (once, twice)


def growing(size: int) -> str:
    """Classes that call functions which call each other with ever larger numbers."""
    helpers = "".join(
        f"def f{at}(t, n):\n    a = f{(at + 1) % 6}(t, n + 1)\n    b = f{(at + 2) % 6}(t, n + 2)\n"
        f"    return a + b + f{(at + 3) % 6}(a, n + 5)\n\n\n"
        for at in range(6)
    )
    classes = (function(f"{IND}return f0(x, {1000 * at})\n", name=f"F{at}") for at in range(size))
    return HEAD + helpers + "\n\n".join(classes)


def pointers(names: int) -> str:
    """A kernel whose addresses are sums of earlier ones, or depend on a test."""
    first = "    v0 = p + tl.program_id(0) * stride\n    w0 = v0\n"
    sums = "".join(f"    v{at + 1} = v{at} + v{at} + {at} * stride\n" for at in range(names))
    tests = "".join(
        f"    if n > {at}:\n        w{at + 1} = w{at} + 1\n    else:\n        w{at + 1} = v{at} * 2 + w{at}\n"
        for at in range(names)
    )
    access = f"    tl.store(v{names} + w{names}, tl.load(w{names} + v{names}))\n\n\n"
    kernel = f"import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(p, q, stride, n):\n{first}{sums}{tests}"
    launch = f"{IND}y = torch.empty_like(x)\n{IND}kernel[(8,)](x, y, x.stride(0), 9)\n{IND}return y\n"
    return HEAD + kernel + access + function(launch)


def chained_kernels(functions: int) -> str:
    """A kernel and functions that call the next one twice, each time with other pointers."""
    calls = ((at, f"    h{at + 1}(a, b, c)\n    h{at + 1}(b, c, a)\n") for at in range(functions))
    kernels = "".join(f"@triton.jit\ndef h{at}(a, b, c):\n{body}\n\n" for at, body in calls)
    last = f"@triton.jit\ndef h{functions}(a, b, c):\n    tl.store(a, tl.load(b + tl.arange(0, 8)))\n\n\n"
    launch = f"{IND}h0[(1,)](g, g, g)\n{IND}return g\n"
    return f"{HEAD}import triton\nimport triton.language as tl\n\n\n{kernels}{last}" + function(
        f"{IND}return x * 1\n", launch
    )


def squares(names: int) -> str:
    """Each is the square of the one before, and the last one is multiplied with a gradient that lacks a dimension."""
    chained = "".join(f"{IND}a{at + 1} = a{at} * a{at}\n" for at in range(names))
    forward = f"{IND}n, c = x.shape\n{IND}ctx.save_for_backward(x)\n{IND}return x.sum(1)\n"
    return HEAD + function(forward, f"{IND}(a0,) = ctx.saved_tensors\n{chained}{IND}return g * a{names}\n")


@pytest.mark.parametrize(
    ("program", "size"),
    [
        (diamond, 60),
        (circle, 80),
        (conditional_names, 480),
        (growing, 12),
        (pointers, 60),
        (chained_kernels, 40),
        (squares, 60),
    ],
)
def test_what_branches_is_not_followed_along_every_way(program: Callable[[int], str], size: int) -> None:
    assert calls_in(lambda: lint_everything(program(size)), builtins=False) < 2_000_000


def doubled_calls(functions: int) -> str:
    """Functions that call the next one twice, each time with another number."""
    last = f"def f{functions}(t, n):\n    return t\n\n\n"
    calls = (f"f{at + 1}(f{at + 1}(t, n * 2 + 1), n * 3)" for at in range(functions))
    others = "".join(f"def f{at}(t, n):\n    return {call}\n\n\n" for at, call in enumerate(calls))
    return HEAD + others + last + function(f"{IND}return f0(x, 1)\n") + function(f"{IND}return x\n", name="Other")


def test_functions_in_vain_are_not_tried_over_and_over() -> None:
    """Each gives up its callee, which is charged less than it took."""
    assert calls_in(lambda: lint_everything(doubled_calls(30)), builtins=False) < 4_000_000
    assert len(given_up(doubled_calls(30))) == 1


@pytest.mark.parametrize("program", [doubled, starred, extended, nested])
def test_what_doubles_over_and_over_is_not_followed_to_its_end(program: Callable[[int], str]) -> None:
    assert work(lambda: lint_everything(program(400))) < 250_000
    assert given_up(program(400)) == []


def test_a_short_repetition_is_counted_still() -> None:
    found = lint_everything(
        HEAD + function(f"{IND}return x\n", f"{IND}z = (g,)\n{IND}z = z + z\n{IND}return (*z, *z)\n")
    )
    assert "CTX202" in {each.code for each in found}


def test_unpacking_the_saved_tensors_over_and_over() -> None:
    assert work(lambda: lint_everything(unpackings(400))) < 400_000
    assert given_up(unpackings(400)) == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, and the working directory."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    forget_other_files()
    return tmp_path


def lint_files(files: dict[str, str], *options: str) -> int:
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return main(["--no-cache", "--isolated", "--exit-zero", "--quiet", "--jobs", "1", *options, "."])


@pytest.mark.usefixtures("folder")
def test_a_diamond_across_files() -> None:
    files = {"m0.py": HEAD + "class A0(Function):\n    pass\n\n\nclass B0(Function):\n    pass\n"}
    for at in range(1, 30):
        above = f"from m{at - 1} import A{at - 1}, B{at - 1}\n"
        both = "".join(f"\n\nclass {each}{at}(A{at - 1}, B{at - 1}):\n    pass\n" for each in "AB")
        files[f"m{at}.py"] = HEAD + above + both
    assert calls_in(lambda: lint_files(files), builtins=False) < 2_500_000


@pytest.mark.usefixtures("folder")
def test_a_diamond_of_star_imports() -> None:
    files = {"m0a.py": HEAD + "class Base(Function):\n    pass\n", "m0b.py": HEAD}
    for at in range(1, 60):
        files |= {f"m{at}{side}.py": f"from m{at - 1}a import *\nfrom m{at - 1}b import *\n" for side in "ab"}
    files["top.py"] = HEAD + "from m59a import *\nfrom m59b import *\n\n\n" + function(f"{IND}return x\n", base="Base")
    assert calls_in(lambda: lint_files(files), builtins=False) < 2_500_000


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("base", ["Function", "extension.Base"])
def test_a_package_that_star_imports_compiled_modules(base: str) -> None:
    package = "".join(f"from ._compiled{at} import *\n" for at in range(12))
    body = f"{IND}y = extension.scale(x)\n{IND}extension.wait(y)\n{IND}return y\n"
    files = {"extension/__init__.py": package, "top.py": HEAD + "import extension\n\n\n" + function(body, base=base)}
    assert calls_in(lambda: lint_files(files), builtins=False) < 500_000


@pytest.mark.usefixtures("folder")
def test_circles_of_imports() -> None:
    files = {
        f"m{at}.py": HEAD
        + "".join(f"from m{(at + step) % 20} import *\n" for step in (1, 2, 3))
        + f"\n\nclass C{at}(Function, C{(at + 1) % 20}):\n    pass\n\n\nC{(at + 2) % 20}.apply(1)\n"
        for at in range(20)
    }
    assert calls_in(lambda: lint_files(files), builtins=False) < 2_500_000


# ---------------------------------------------------------------------------------------------------------------------
# Fixes


def fix_all(text: str) -> tuple[Any, int]:
    """The result of ``--fix --unsafe-fixes``, and in how many rounds."""
    settings = Settings(select=("ALL",), fix=True, unsafe_fixes=True)
    rounds = 0

    def check(source: Source) -> Any:
        nonlocal rounds
        rounds += 1
        return check_source(source, settings)

    return apply.apply_fixes(check(Source("example.py", text)), settings, check), rounds


def test_two_hundred_attributes_are_moved_in_a_few_rounds() -> None:
    result, rounds = fix_all(kept(200))
    assert rounds < 8
    assert result.warnings == ()
    assert "ctx.a" not in result.source.text
    saved = result.source.text.partition("save_for_backward(")[2].partition(")")[0]
    assert f"{IND}{saved} = ctx.saved_tensors\n" in result.source.text
    assert len(saved.split(", ")) == 200


def test_what_is_moved_together_is_moved_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    together, rounds = fix_all(kept(12))
    monkeypatch.setattr(apply, "_go_together", lambda *_: False)
    one_by_one, more_rounds = fix_all(kept(12))
    assert together.source.text == one_by_one.source.text
    assert together.fixed == one_by_one.fixed
    assert rounds + 6 < more_rounds


def test_fixes_end_before_they_take_too_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "_go_together", lambda *_: False)
    monkeypatch.setattr(apply, "STEPS_OF_FIXES", 60_000)
    text = kept(12)
    result, _ = fix_all(text)
    left = [each for each in result.diagnostics if each.fix is not None]
    assert result.before.text == text
    assert left
    assert result.warnings == (
        (0, f"stopped fixing at the limit of work for one file; {len(left)} fixable with another `--fix`"),
    )
    while result.warnings:
        result, _ = fix_all(result.source.text)
    assert "ctx.a" not in result.source.text


# ---------------------------------------------------------------------------------------------------------------------
# What is given up


def chain(classes: int) -> str:
    text = HEAD + function(f"{IND}return x\n", f"{IND}return g, g\n", name="C0")
    return text + "".join(f"class C{at}(C{at - 1}):\n    pass\n\n\n" for at in range(1, classes))


def test_a_chain_of_nine_hundred_bases() -> None:
    """Every class computes its ancestors, up to a hundred."""
    assert len(given_up(chain(900))) == 800


def costly_body(indentation: str = IND) -> str:
    """A body beyond the limit of work: each ``finally`` is walked twice."""
    inside = f"{indentation}{' ' * 11}x = (x + 1) * 2 - (x + 3) * 4 - (x + 5) * 6 - (x + 7) * 8\n" * 16
    before = [indentation + " " * at for at in range(11)]
    around = "".join(f"{each}try:\n{each} pass\n{each}finally:\n" for each in before)
    return f"{around}{inside}{indentation}return x\n"


def costly(name: str = "Costly") -> str:
    """A Function beyond the limit of work."""
    return function(costly_body(), name=name)


def test_the_gradient_of_an_operator_is_limited_too() -> None:
    operator = (
        "@torch.library.custom_op('a::b', mutates_args=())\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x\n"
    )
    text = f"{HEAD}{operator}\n\ndef backward(ctx, x):\n{costly_body('    ')}\n\nf.register_autograd(backward)\n"
    assert given_up(text) == [text.count("\n")]


def test_the_other_classes_of_the_file_go_on() -> None:
    wrong = function(f"{IND}return x\n", f"{IND}return g, g\n", name="Wrong")
    text = HEAD + wrong + costly() + wrong.replace("Wrong", "Wrong2")
    found = [(each.code, text.splitlines()[each.span.start.line - 1].strip()) for each in lint_everything(text)]
    assert [each for each in found if each[0] in ("CTX202", "CTX903")] == [
        ("CTX202", "return g, g"),
        ("CTX903", "class Costly(Function):"),
        ("CTX202", "return g, g"),
    ]


def test_the_steps_of_all_classes_together_are_limited() -> None:
    text = HEAD + "".join(costly(f"C{at}") for at in range(12))
    assert work(lambda: lint_everything(text)) < 1.1 * STEPS_OF_A_FILE
    assert len(given_up(text)) == 12


@pytest.mark.usefixtures("folder")
def test_what_is_given_up_is_seen_in_every_report(capfd: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(HEAD + costly(), encoding="utf-8")
    told = "`Costly` is too complex to analyse; it is not checked in full."
    for output_format in ("full", "concise", "github", "sarif", "json"):
        assert main(["--no-cache", "--isolated", "--select", "CTX201", "--output-format", output_format, "a.py"]) == 1
        assert told in capfd.readouterr().out
    assert json.loads(_json(capfd, "a.py"))[0]["severity"] == "warning"
    assert main(["--no-cache", "--isolated", "--ignore", "CTX903", "a.py"]) == 0


def _json(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["--no-cache", "--isolated", "--exit-zero", "--output-format", "json", *arguments])
    return capfd.readouterr().out


@pytest.mark.usefixtures("folder")
def test_the_same_is_given_up_whatever_the_number_of_processes(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "WORTH_SHARING", 2)
    for number in range(4):
        Path(f"m{number}.py").write_text(HEAD + (costly() if number % 2 else chain(3)), encoding="utf-8")
    alone, shared = (_json(capfd, "--jobs", jobs, ".") for jobs in ("1", "2"))
    assert alone == shared
    assert alone.count("CTX903") >= 2


def test_a_rule_that_takes_too_much_work_is_given_up_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxlint.rules.ctx201_too_few_gradients import TooFewGradients

    def check(*_: object) -> Any:
        spend(STEPS_OF_A_CLASS + 1)

    monkeypatch.setattr(TooFewGradients, "check", check)
    text = HEAD + function(f"{IND}return x\n", f"{IND}ctx.a = g\n{IND}return g, g\n")
    settings = Settings(command_line=Selection(select=("CTX201",)))
    codes = [each.code for each in check_source(Source("a.py", text), settings).diagnostics]
    assert codes == ["CTX903"]


def test_the_steps_left_are_those_of_before_again() -> None:
    effort = Effort(100, 60)
    before = steps.left
    with effort.on("a"):
        spend(50)
    with pytest.raises(EffortExceeded), effort.on("a"):
        spend(20)
    with effort.on("b"):
        spend(40)
    with pytest.raises(EffortExceeded), effort.on("c"):
        spend(1)
    assert steps.left == before
    assert effort.left == 0
