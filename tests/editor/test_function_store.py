"""Incremental analysis equals analysis from scratch, after each of thousands of edits."""

from __future__ import annotations

import ast
import random
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.editor.checking import Checker
from ctxlint.editor.documents import Document
from ctxlint.editor.workspace import Workspace
from ctxlint.explain import contract
from ctxlint.explain.contract import contracts_of
from ctxlint.model.builder import Builder
from ctxlint.model.index import call_sites, parsing
from ctxlint.model.index.passed_tensors import parameters_among
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.walk import Walk
from ctxlint.model.reader import Reader
from ctxlint.run.answers import Answering
from ctxlint.run.in_project import Surroundings, forget_other_files
from tests.editor.texts import HEAD, missing_none
from tests.explain.contracts import hints_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import libcst as cst

    from ctxlint.model.function import FunctionClass, SourceFile
    from ctxlint.model.index.file_index import ClassRecord
    from ctxlint.model.index.outside_facts import OutsideFacts, ProjectQuestion
    from ctxlint.run.answers import Other
    from ctxlint.source.imports import Imports
    from ctxlint.source.scanner import Search

PROGRAMS = sorted((Path(__file__).parents[2] / "fixtures" / "programs").glob("*/*.py"))
WORDS = ["x", "grad_output", "scale", "ctx", "None", "self", "Function", "helper", "torch"]
PIECES = [
    *"()[]:,#'\n= ",
    '"""',
    "    ",
    "        ctx.y = y\n",
    "        ctx.save_for_backward(x)\n",
    "        self.scale = 1\n",
    "        y = helper(x)\n",
    "        return grad_output, None\n",
    "\nimport torch\n",
    "\nfrom torch.autograd import Function\n",
    "\ndef helper(x):\n    return x * 2, None\n",
    "\nclass Extra(torch.autograd.Function):\n    pass\n",
    "\nExtra.apply(1, 2)\n",
    "\nscale = 2\n",
    "'to_save'",
    "grad_fn",
    "  # noqa\n",
    "  # helper\n",
    '    """See helper."""\n',
    'getattr(ctx, "scale")\n',
]


def edited(chance: random.Random, text: str) -> str:
    """The text after a typical edit: type, delete, move lines, use another name."""
    at = chance.randrange(len(text) + 1)
    what = chance.random()
    if what < 0.25:
        gone: int = chance.choice([1, 1, 1, 4, 30, 200])
        return text[:at] + text[at + gone :]
    lines = text.split("\n")
    first, there = chance.randrange(len(lines)), chance.randrange(len(lines))
    if what < 0.4:
        moved = lines[first : first + chance.randrange(1, 15)]
        if chance.random() < 0.5:
            del lines[first : first + len(moved)]
        lines[there:there] = moved
        return "\n".join(lines)
    if what < 0.6:
        lines.insert(first, chance.choice(["", "    ", "        "]) + chance.choice(PIECES).strip("\n"))
        return "\n".join(lines)
    names = list(re.finditer(r"\w+", text))
    if what < 0.8 and names:
        name = chance.choice(names)
        other = chance.choice([chance.choice(names)[0], chance.choice(WORDS)])
        return text[: name.start()] + other + text[name.end() :]
    typed: str = chance.choice(PIECES)
    return f"{text[:at]}{typed}{text[at:]}"


def typed(chance: random.Random, text: str, places: Sequence[int] = ()) -> Iterator[str]:
    """The texts while a line is typed key by key, below one of the lines ``places``, or anywhere."""
    lines = text.split("\n")
    at = chance.choice(places) - 1 if places else chance.randrange(len(lines))
    line = re.sub(r"\S.*", "", lines[at]) + chance.choice(PIECES).strip()
    for end in range(len(line) - len(line.lstrip()), len(line) + 1):
        yield "\n".join([*lines[: at + 1], line[:end], *lines[at + 1 :]])


def texts(chance: random.Random, first: str, number: int) -> Iterator[str]:
    """A sequence of edits of the first text; some of them start again from it."""
    text = first
    for _ in range(number):
        yield text
        if chance.random() < 0.1:
            yield from (text := each for each in typed(chance, text))
        text = edited(chance, first if chance.random() < 0.1 else text)


def shown(checker: Checker, document: Document) -> tuple[object, ...]:
    """Everything that the editor shows for a document."""
    result, file = checker.check(document).result, checker.model_of(document)
    hints = [(each.position, each.label) for each in hints_of(file)] if file is not None else []
    contracts = contracts_of(file) if file is not None else ()
    return result.diagnostics, result.hidden, result.warnings, result.broken, hints, contracts


def from_nothing(workspace: Workspace, uri: str) -> Callable[[str], tuple[object, ...]]:
    """What an analysis from nothing shows for a text; a text that comes again is not analysed again."""
    return cache(lambda text: shown(Checker(workspace), Document(uri, text, 0, "python")))


def compare(first: str, name: str, number: int, tmp_path: Path, seed: str | None = None) -> None:
    workspace = Workspace(lambda _: None, (str(tmp_path),))
    checker = Checker(workspace)
    uri = (tmp_path / name).as_uri()
    for version, text in enumerate(texts(random.Random(seed or name), first, number)):
        anew = shown(Checker(workspace), Document(uri, text, version, "python"))
        assert shown(checker, Document(uri, text, version, "python")) == anew, text


def _id(path: Path) -> str:
    """The id of a program, and its seed: most clean programs have a broken version, which must get other edits."""
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", PROGRAMS, ids=_id)
def test_what_is_kept_is_what_an_analysis_from_nothing_gives(path: Path, tmp_path: Path) -> None:
    compare(path.read_text(), path.name, 30, tmp_path, _id(path))


def commented(chance: random.Random, text: str) -> str:
    """The text after another comment, or other blanks, on a line without code, or after it; it may be in a string."""
    lines = text.split("\n")
    if chance.random() < 0.3:
        at = chance.randrange(len(lines))
        lines[at] = lines[at].partition("  #")[0] + chance.choice(
            ["", " ", "#", "  # why", "  # noqa: CTX203", "  # x'"]
        )
        return "\n".join(lines)
    at = chance.choice([at for at, line in enumerate(lines) if line.strip()[:1] in ("", "#")])
    typed = chance.choice(
        ["", "#", " ", "    ", "        ", "# ctx.x", "    # noqa: CTX203", "        # (", "# ctxlint: off"]
    )
    lines[at] = chance.choice([typed, lines[at] + " ", lines[at] + "#", lines[at][:-1]])
    return "\n".join(lines)


@pytest.mark.parametrize("path", PROGRAMS, ids=_id)
def test_the_same_when_comments_are_edited(path: Path, tmp_path: Path) -> None:
    chance, workspace = random.Random(_id(path)), Workspace(lambda _: None, (str(tmp_path),))
    checker, uri = Checker(workspace), (tmp_path / path.name).as_uri()
    first = text = re.sub(r"\n( +)(return|ctx\.|grad)", r"\n\1# why\n\1\2", path.read_text())
    anew = from_nothing(workspace, uri)
    for version in range(40):
        document = Document(uri, text, version, "python")
        assert shown(checker, document) == anew(text), text
        if chance.random() < 0.3:
            checker.fixed(checker.check(document), lambda: None)
        what = chance.random()
        text = first if what < 0.05 else edited(chance, text) if what < 0.2 else commented(chance, text)


@pytest.mark.parametrize("line", ["", "        # why", "        ", "# why"])
def test_a_comment_in_a_function_analyses_nothing(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    build = Builder.build

    def noted(self: Builder, record: ClassRecord) -> FunctionClass | None:
        built.append(record.qualname)
        return build(self, record)

    monkeypatch.setattr(Builder, "build", noted)
    text = HEAD + missing_none().replace("        return grad_output", "\n        return grad_output")
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    before = checker.check(Document(uri, text, 1, "python"))
    built.clear()
    changed = text.replace("\n\n        return grad_output", f"\n{line}\n        return grad_output")
    assert (changed == text) is (line == "")
    after = checker.check(Document(uri, changed, 2, "python"))
    assert built == []
    (old,), (new,) = before.diagnostics, after.diagnostics
    assert old.fix is not None
    assert new.fix is not None
    assert new.span == old.span
    assert [edit.start - len(line) for edit in new.fix.edits] == [edit.start for edit in old.fix.edits]


SAYING = {
    "CTX248": """

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        # straight-through
        return grad, None
""",
    "CTX301": """

class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        # not save_for_backward, as hooks would move it
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.x * 2
""",
}


@pytest.mark.parametrize("code", SAYING)
def test_a_comment_that_silences_can_be_removed_and_written_again(code: str, tmp_path: Path) -> None:
    """Whether a Function is meant as it is may depend on its comments."""
    silent = HEAD + SAYING[code]
    loud = re.sub(r"# .*", "# why", silent)
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    found = []
    for version, text in enumerate((silent, loud, silent, loud)):
        diagnostics = checker.check(Document(uri, text, version, "python")).diagnostics
        found.append([each.code for each in diagnostics if each.code == code])
    assert found == [[], [code], [], [code]]


@pytest.mark.parametrize("path", PROGRAMS, ids=_id)
def test_the_same_when_methods_are_edited(path: Path, tmp_path: Path) -> None:
    text, chance, workspace = path.read_text(), random.Random(_id(path)), Workspace(lambda _: None, (str(tmp_path),))
    checker, uri = Checker(workspace), (tmp_path / path.name).as_uri()
    anew = from_nothing(workspace, uri)
    for version in range(4):
        methods = re.finditer(r"^    def \w+\((?:ctx|self|cls|x).*\n(?:(?: {8}.*)?\n)*", text, re.MULTILINE)
        spans = [(text.count("\n", 0, each.start()), text.count("\n", 0, each.end())) for each in methods]
        versions = list(typed(chance, text, [line for first, last in spans for line in range(first + 1, last)]))
        for each in [*versions[:6], versions[-1], *([text] if version % 2 else [])]:
            document = Document(uri, each, version, "python")
            assert shown(checker, document) == anew(each), each
            if version % 3 == 0:
                checker.fixed(checker.check(document), lambda: None)
        text = versions[-1] if version % 4 == 1 else text


CALLED = """\
import torch


class Plan:
    def run(self, tensor):
        return tensor.mul_(2)


def halve(tensor):
    return tensor.div_(2)


TABLE = {"halve": halve}


class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, mode, plan: Plan):
        return plan.run(x) + TABLE[mode](y)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, grad / 2, None, None
"""


def test_statements_that_no_name_leads_to(tmp_path: Path) -> None:
    workspace = Workspace(lambda _: None, (str(tmp_path),))
    checker = Checker(workspace)
    uri = (tmp_path / "called.py").as_uri()
    numbers = []
    for version, more in enumerate(("", "class Other(Plan):\n    pass\n", 'TABLE["other"] = len\n', "")):
        document = Document(uri, f"{CALLED}\n\n{more}", version, "python")
        assert shown(checker, document) == shown(Checker(workspace), document)
        numbers.append(sum(each.code == "CTX401" for each in checker.check(document).result.diagnostics))
    assert numbers == [2, 1, 1, 2]


def test_the_same_in_files_of_many_functions(tmp_path: Path) -> None:
    heirs = "".join(f"\n\nclass Heir{at}(Layer{at}):\n    scale = {at}\n" for at in range(3))
    text = HEAD + "".join(missing_none(f"Layer{at}") for at in range(6)) + heirs
    compare(text + "\n\nLayer1.apply(1, 2)\nHeir2.apply(1.0, None)\n", "many.py", 200, tmp_path)


HELPERS = """import torch
from torch.autograd import Function

SCALE = 2


def fill(t, value):
    t.add_(value)
    return t


def outer(t):
    return fill(t, SCALE)


def pair(x):
    return x * 2, None


class First(Function):
    @staticmethod
    def forward(ctx, x, y):
        outer(x)
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        fill(grad, 1)
        return pair(grad)


class Second(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.x = fill(x, 1)
        ctx.scale = scale
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        outer(ctx.x)
        return grad * ctx.scale


def use(a):
    return First.apply(a, 2.0) + Second.apply(a, None)
"""


STASH = """import torch
from torch.autograd import Function


class Keep(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = x
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def use(node):
    return node.other
"""


def test_a_read_elsewhere_in_the_file_is_noticed(tmp_path: Path) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    for version, text in enumerate((STASH, STASH.replace(".other", ".kept"), STASH)):
        anew = shown(Checker(Workspace(lambda _: None, (str(tmp_path),))), Document(uri, text, version, "python"))
        assert shown(checker, Document(uri, text, version, "python")) == anew


RAISES = """import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        scale = unknown
        grad_output *= 2
        return grad_output


def use(x):
    return Scale.apply(x)
"""


@pytest.mark.parametrize(("old", "new"), [("def use(x):", "def use(x:"), ("return Scale", "vars()[x] = Scale")])
def test_a_name_that_other_code_may_create_certainly_raises_no_longer(old: str, new: str, tmp_path: Path) -> None:
    checker = Checker(Workspace(lambda _: None, (str(tmp_path),)))
    uri = (tmp_path / "scale.py").as_uri()
    codes = [
        {each.code for each in checker.check(Document(uri, text, 1, "python")).diagnostics}
        for text in (RAISES, RAISES.replace(old, new), RAISES)
    ]
    assert ["CTX404" in each for each in codes] == [False, True, False]


LACKS = """import torch


def product(x):
    return torch.linear(x)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return CALL

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""


@pytest.mark.parametrize("call", ["torch.linear(x)", "product(x)"])
def test_a_name_that_the_file_gives_to_torch_is_noticed(call: str, tmp_path: Path) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "scale.py").as_uri()
    lacks = LACKS.replace("CALL", call)
    texts = (lacks, lacks + "\n\ntorch.linear = print\n", lacks + "\n\n", lacks, lacks + "\n\ntorch.linear = print\n")
    codes = [
        {each.code for each in checker.check(Document(uri, text, version, "python")).diagnostics}
        for version, text in enumerate(texts)
    ]
    assert ["CTX604" in each for each in codes] == [True, False, True, True, False]


TUNED = """import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def accumulate(g_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(sum_ptr + at, mask=at < n)
    tl.store(sum_ptr + at, total + tl.load(g_ptr + at, mask=at < n), mask=at < n)


class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, total):
        ctx.total = total
        return x * 1

    @staticmethod
    def backward(ctx, grad_output):
        accumulate[(8,)](grad_output.contiguous(), ctx.total, grad_output.numel())
        return grad_output, None
"""


def test_configurations_that_the_file_may_change_are_noticed(tmp_path: Path) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "scale.py").as_uri()
    texts = (TUNED, TUNED + "\n\nCONFIGS.clear()\n", TUNED + "\n\n", TUNED + "\n\nCONFIGS.pop()\n")
    codes = [
        {each.code for each in checker.check(Document(uri, text, version, "python")).diagnostics}
        for version, text in enumerate(texts)
    ]
    assert ["CTX709" in each for each in codes] == [True, False, True, False]


def found_while_another_file_changes(code: str, cases: Iterable[tuple[str, str]], folder: Path) -> list[bool]:
    """Whether a rule finds something in each text of ``a.py`` next to each text of ``other.py``, kept or from nothing."""
    workspace, uri = Workspace(lambda _: None, (str(folder),)), (folder / "a.py").as_uri()
    (folder / ".git").mkdir()
    checker, found = Checker(workspace), []
    for version, (text, elsewhere) in enumerate(cases):
        (folder / "other.py").write_text(elsewhere, encoding="utf-8")
        forget_other_files()
        checker.refresh()
        document = Document(uri, text, version, "python")
        assert shown(checker, document) == shown(Checker(workspace), document)
        found.append(code in [each.code for each in checker.check(document).diagnostics])
    return found


def test_a_method_that_is_replaced_by_its_name_is_noticed(tmp_path: Path) -> None:
    """In the file itself, and in another one that is saved meanwhile."""
    text = STASH.replace("grad * 2", "grad * missing")
    replaced = f"{text}\n\nfrom lib import register_patch\nregister_patch('a.{{}}.backward', print)\n"
    name = re.findall(r"class (\w+)", text)[0]
    named = replaced.replace("{}", name)
    cases = ((text, ""), (replaced, ""), (named, ""), (text, ""), (text, named.rpartition("\n\n")[2]), (text, ""))
    assert found_while_another_file_changes("CTX223", cases, tmp_path) == [True, True, False, True, False, True]


def test_callers_with_grad_mode_off_are_noticed(tmp_path: Path) -> None:
    text = STASH.replace("        ctx.kept = x\n        return x * 2", "        return x.view(-1)") + (
        "\n\ndef shifted(x):\n    y = Keep.apply(x)\n    y += 1\n    return y\n"
    )
    without = "    with torch.no_grad():\n        return shifted(x)\n"
    inside = f"{text}\n\ndef evaluate(x):\n{without}"
    outside = f"import torch\nfrom a import shifted\n\n\ndef evaluate(x):\n{without}"
    cases = ((text, ""), (inside, ""), (text, ""), (text, outside), (f"{text}\n\ndef f(x):\n    shifted(x)\n", outside))
    assert found_while_another_file_changes("CTX406", cases, tmp_path) == [True, False, True, False, True]


def test_a_name_that_another_file_sets_is_noticed(tmp_path: Path) -> None:
    text, sets = STASH.replace("grad * 2", "grad * missing"), "import a\n\na.missing = 2\n"
    cases = ((text, ""), (text, sets), (text.replace("missing", "other"), sets), (text, sets), (text, ""))
    assert found_while_another_file_changes("CTX223", cases, tmp_path) == [True, False, True, False, True]


def test_a_name_that_is_being_typed_is_no_new_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "patch.py").write_text("import a\n\na.missing = 2\n", encoding="utf-8")
    searches: list[object] = []
    search = Surroundings._mentioning

    def noted(self: Surroundings, others: Iterable[Other], what: Search) -> list[Other]:
        searches.append(what)
        return search(self, others, what)

    monkeypatch.setattr(Surroundings, "_mentioning", noted)
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    found = []
    for version in range(len("missing") + 1):
        text = STASH.replace("grad * 2", f"grad * 2{' * missing'[: version + 3] if version else ''}")
        codes = [each.code for each in checker.check(Document(uri, text, version, "python")).diagnostics]
        found.append(("CTX223" in codes, len(searches)))
    assert [each for each, _number in found] == [False, *[True] * 6, False]
    assert len({number for _each, number in found[1:]}) == 1


def test_what_other_files_set_matters_only_to_what_reads_an_unbound_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    build = Builder.build

    def noted(self: Builder, record: ClassRecord) -> FunctionClass | None:
        names.append(record.qualname)
        return build(self, record)

    monkeypatch.setattr(Builder, "build", noted)
    (tmp_path / ".git").mkdir()
    (tmp_path / "patch.py").write_text("import a\n\na.missing = 2\n", encoding="utf-8")
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    text = HEAD + "".join(missing_none(name) for name in ("First", "Second"))
    for version, typed in enumerate(("", "sizes * ", "missing * ")):
        names.clear()
        changed = text.replace("return grad_output", f"return {typed}grad_output", 1)
        found = [each.code for each in checker.check(Document(uri, changed, version, "python")).diagnostics]
        assert ("CTX223" in found) == (typed == "sizes * ")
        assert set(names) == ({"First"} if typed else {"First", "Second"})


def test_files_are_searched_only_for_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "plain.py").write_text("import os\n", encoding="utf-8")
    searched: list[ProjectQuestion] = []
    in_file = Answering.in_file

    def noted(self: Answering, path: str, imports: Imports) -> bool:
        searched.extend(self.asked if path.endswith("plain.py") else ())
        return in_file(self, path, imports)

    monkeypatch.setattr(Answering, "in_file", noted)
    text = f"{HEAD}{missing_none()}".replace("return grad", "torch.ops.my.f(grad_output)\n        return grad")
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    for version, each in enumerate((text, text.replace("return grad", "return missing * grad"))):
        checker.check(Document(uri, each, version, "python"))
    assert [each.deed for each in searched] == ["declares", "assigns"]


def test_what_a_keystroke_may_ask_is_searched_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    for number in range(200):
        (tmp_path / f"file{number}.py").write_text("import a\n\na.missing = 2\n" if number == 150 else "import os\n")
    searched: list[str] = []
    in_file = Answering.in_file

    def noted(self: Answering, path: str, imports: Imports) -> bool:
        searched.append(path)
        return in_file(self, path, imports)

    def stop() -> None:
        if len(searched) > 100:
            raise InterruptedError

    monkeypatch.setattr(Answering, "in_file", noted)
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    (tmp_path / "a.py").write_text(text := f"{HEAD}{missing_none()}", encoding="utf-8")
    document = Document(uri, text, 1, "python")
    checker.check(document)
    assert searched == []
    with pytest.raises(InterruptedError):
        checker.ask_ahead(document, stop)
    assert len(searched) == 128
    checker.ask_ahead(document, lambda: None)
    assert sorted(searched) == sorted(str(tmp_path / f"file{number}.py") for number in range(200))
    searched.clear()
    for version, name in enumerate(("missing", "sizes"), start=2):
        typed = Document(uri, text.replace("return grad", f"return {name} * grad"), version, "python")
        found = [each.code for each in checker.check(typed).diagnostics]
        assert ("CTX223" in found) == (name == "sizes")
    assert {path for path in searched if not path.endswith("a.py")} <= {str(tmp_path / "file150.py")}


def test_what_others_store_is_noticed(tmp_path: Path) -> None:
    """Also while the class that stores it is half typed."""
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    unset = STASH.replace("grad * 2", "grad * ctx.late")
    stores = unset + "\n\nclass Other:\n    def set(self, node):\n        node.late = 1\n"
    found = []
    for version, text in enumerate(
        (unset, stores, stores.replace("= 1", "="), stores.replace("late = 1", "l = 1"), stores)
    ):
        anew = shown(Checker(Workspace(lambda _: None, (str(tmp_path),))), Document(uri, text, version, "python"))
        assert shown(checker, Document(uri, text, version, "python")) == anew
        found.append(
            sum(each.code == "CTX306" for each in checker.check(Document(uri, text, version, "python")).diagnostics)
        )
    assert found == [1, 0, 1, 1, 0]


def with_helpers_below(text: str) -> str:
    """The text with its functions and classes that are no Functions, and are above one, at its end."""
    parts = text.split("\n\n\n")
    above = [each for each in parts if each.startswith(("def ", "class ")) and "(Function)" not in each]
    return "\n\n\n".join([*(each for each in parts if each not in above), *above])


@pytest.mark.parametrize("text", [HELPERS, with_helpers_below(HELPERS)], ids=["above", "below"])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_with_helpers_that_write_into_tensors(tmp_path: Path, seed: int, text: str) -> None:
    compare(text, f"helpers{seed}.py", 80, tmp_path)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the methods that are interpreted, in order."""
    names: list[str] = []

    def noted(function: cst.FunctionDef, *more: object) -> object:
        names.append(function.name.value)
        return interpret(function, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("ctxlint.model.builder.interpret", noted)
    return names


@pytest.mark.parametrize(
    ("helper", "walked"),
    [
        ("def helper(x):\n    return x\n", {"backward"}),
        ("def helper(x):\n    return x.mul_(2)\n", {"forward", "backward"}),
    ],
    ids=["moves", "is shown"],
)
def test_code_below_may_move_unless_a_finding_may_show_it(
    helper: str, walked: set[str], tmp_path: Path, interpreted: list[str]
) -> None:
    text = HEAD + missing_none("First").replace("x * scale", "helper(x) * scale") + "\n\n" + helper
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    checker.check(Document(uri, text, 1, "python"))
    assert set(interpreted) == {"forward", "backward"}
    interpreted.clear()
    moved = text.replace("        return grad_output", "\n        return grad_output")
    checker.check(Document(uri, moved, 2, "python"))
    assert set(interpreted) == walked


MISFIT = """import torch


class Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return ring(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def shifted(x, by, along):
    return x.roll(by, along)


def ring(x):
    return shifted(x, 1)
"""
UNPACKED = """import torch


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        c, h, w = x.shape
        ctx.save_for_backward(x)
        return x * c

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * planes(x)


def planes(x):
    b, c, h, w = x.shape
    return b
"""


@pytest.mark.parametrize(("text", "code", "shown_at"), [(MISFIT, "CTX706", 19), (UNPACKED, "CTX305", 18)])
@pytest.mark.parametrize("at", ["import torch\n", "        return grad_output"])
def test_what_a_finding_shows_in_a_function_may_move(
    at: str, text: str, code: str, shown_at: int, tmp_path: Path
) -> None:
    workspace = Workspace(lambda _: None, (str(tmp_path),))
    checker, uri = Checker(workspace), (tmp_path / "a.py").as_uri()
    for version, now in enumerate((text, text.replace(at, f"\n{at}"))):
        document = Document(uri, now, version, "python")
        assert shown(checker, document) == shown(Checker(workspace), document)
        found = [each for each in checker.check(document).diagnostics if each.code == code]
        assert next(note.span.start.line for each in found for note in each.related) == shown_at + version


FAULT = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(g_ptr, dx_ptr, n, HAS: tl.constexpr, COLS: tl.constexpr):
    col = tl.arange(0, COLS)
    if HAS:
        dx = tl.load(g_ptr + col)
    tl.store(dx_ptr + col, dx)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        dx = torch.empty_like(grad_output)
        kernel[(1,)](grad_output, dx, 32, HAS=False, COLS=32)
        return dx
"""


def test_a_fault_in_a_kernel_that_is_shown_may_move(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ctxlint]\nselect = ["CTX713"]\n', encoding="utf-8")
    workspace = Workspace(lambda _: None, (str(tmp_path),))
    checker, uri = Checker(workspace), (tmp_path / "a.py").as_uri()
    lines = []
    for version, text in enumerate((FAULT, f"\n{FAULT}")):
        document = Document(uri, text, version, "python")
        assert shown(checker, document) == shown(Checker(workspace), document)
        lines += [note.span.start.line for each in checker.check(document).diagnostics for note in each.related]
    assert lines == [11, 12]


OBJECTS = """import torch
from torch.autograd import Function


class Plan:
    def __init__(self, scale):
        self.scale = scale

    def run(self, tensor):
        return tensor * self.scale


class Run(Function):
    @staticmethod
    def forward(ctx, x, plan: Plan):
        ctx.plan = plan
        ctx.own = Plan(2)
        y = plan.run(x)
        return y

    @staticmethod
    def backward(ctx, grad):
        first = ctx.plan.run(grad)
        return ctx.own.run(first), None
"""


@pytest.mark.parametrize("text", [OBJECTS, with_helpers_below(OBJECTS)], ids=["above", "below"])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_with_objects_of_the_file(tmp_path: Path, seed: int, text: str) -> None:
    compare(text, f"objects{seed}.py", 80, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "walked"),
    [
        ("return ctx.own", "return ctx.plan", ["backward", "backward"]),
        ("return y", "return y + 1", ["forward"]),
        ("tensor * self", "tensor + self", ["backward", "forward"]),
    ],
    ids=["backward", "forward", "class"],
)
def test_a_method_with_objects_is_walked_if_it_or_their_class_changes(
    old: str, new: str, walked: list[str], tmp_path: Path, interpreted: list[str]
) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    checker.check(Document(uri, OBJECTS, 1, "python"))
    interpreted.clear()
    checker.check(Document(uri, OBJECTS.replace(old, new), 2, "python"))
    assert sorted(interpreted) == walked


def test_what_the_class_of_a_kept_object_does_is_noticed(tmp_path: Path) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    writes = OBJECTS.replace("tensor * self", "tensor.mul_(self").replace(
        "scale\n\n\nclass Run", "scale)\n\n\nclass Run"
    )
    numbers = []
    for version, text in enumerate((OBJECTS, writes, writes.replace("return y", "return y + 1"), OBJECTS)):
        document = Document(uri, text, version, "python")
        assert shown(checker, document) == shown(Checker(Workspace(lambda _: None, (str(tmp_path),))), document)
        numbers.append(sum(each.code == "CTX401" for each in checker.check(document).diagnostics))
    assert numbers == [0, 1, 1, 0]


def test_the_class_of_a_kept_object_may_move(tmp_path: Path) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    text = with_helpers_below(OBJECTS.replace("tensor * self.scale", "tensor.mul_(self.scale)"))
    text = (
        text.replace("(ctx, x, plan: Plan)", "(ctx, x, plan)")
        .replace("= plan.run(x)", "= x * 2")
        .replace("= ctx.plan.run(grad)", "= grad")
    )
    for version, more in enumerate(("", "\n", "\n\n        other = grad", "")):
        document = Document(uri, text.replace("backward(ctx, grad):", f"backward(ctx, grad):{more}"), version, "python")
        found = shown(checker, document)
        assert found == shown(Checker(Workspace(lambda _: None, (str(tmp_path),))), document)
        assert any(each.code == "CTX404" for each in checker.check(document).diagnostics)


CALLS = """import torch
from torch.autograd import Function


class Base(Function):
    @staticmethod
    def forward(ctx, x, scale):
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        return grad


class Heir(Base):
    @staticmethod
    def forward(ctx, x, scale):
        return Base.forward(ctx, x, scale)

    @classmethod
    def again(cls, ctx, grad):
        return super().backward(ctx, grad), None


class Ops:
    scale = Base.apply
    heir = Heir

    def __init__(self):
        self.sizes = [1, 2]
        self.other = Heir()

    def run(self, x):
        return Base.apply(x, self.sizes)


def one(x):
    y = Ops.scale(x, 1.0)
    y.add_(1)
    return Ops.heir.apply(x, None)


def two(x, flag):
    with torch.no_grad():
        if flag:
            return Heir.apply(x, 2)
    return (Base if flag else Heir).apply(x.detach(), [1])


def three(x):
    setattr(Heir, "forward", one)
    return two(x, True)
"""
OPERATORS = """import torch
from torch.library import custom_op, register_autograd as register

SIZE = 2


def doubled(x):
    return x


@custom_op("lib::scale", mutates_args=())
def scale(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return doubled(x)


@torch.library.custom_op("lib::sums", mutates_args=())
def sums(x: torch.Tensor, y: float) -> torch.Tensor:
    return x + y * SIZE


def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    x, y = ctx.saved_tensors
    return grad * y


def apart(x):
    return scale(x, 1)


register("lib::scale", backward, setup_context=setup)
sums.register_autograd(lambda ctx, grad: (grad, None))
torch.library.register_autograd("lib::sums", backward)
"""
NAMES = [
    "doubled",
    "register",
    "y",
    "Base",
    "Heir",
    "Ops",
    "Function",
    "scale",
    "heir",
    "forward",
    "backward",
    "apply",
    "one",
    "x",
    "sizes",
    "None",
]


def renamed(chance: random.Random, text: str) -> str:
    """The text after a change within one line: the lines, and thus most statements, stay the same."""
    words = list(re.finditer(r"\w+", text))
    word = chance.choice(words)
    other = chance.choice(
        [*NAMES, "global Base", f"{word[0]}.apply", f"({word[0]} := 1)", f"{word[0]}(x)", "class Base: pass"]
    )
    return text[: word.start()] + other + text[word.end() :]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("first", [CALLS, OPERATORS], ids=["calls", "operators"])
def test_the_same_when_other_statements_change_what_names_mean(tmp_path: Path, seed: int, first: str) -> None:
    chance, around = random.Random(seed), Workspace(lambda _: None, (str(tmp_path),))
    (tmp_path / "ctxlint.toml").write_text('select = ["ALL"]\n')
    checker, uri, text = Checker(around), (tmp_path / "calls.py").as_uri(), first
    for version in range(120):
        anew = shown(Checker(around), Document(uri, text, version, "python"))
        assert shown(checker, Document(uri, text, version, "python")) == anew, text
        text = renamed(chance, first if chance.random() < 0.4 else text)


@pytest.mark.parametrize(
    ("change", "built"),
    [
        (lambda text: "# above\n" + text, set()),
        (lambda text: text + "\n\nprint('below')\n", set()),
        (lambda text: text + "\n\ndef note(thing):\n    thing.unread = 1\n", set()),
        (lambda text: text + "\n\ndef note(thing):\n    thing.grad_output = 1\n", {"First", "Second", "Third"}),
        (lambda text: text.replace("def second(x):", "def second(x, y):"), set()),
        (lambda text: text.replace("class Second", "# a comment\nclass Second"), set()),
        (lambda text: text.replace("`", "").replace("x * scale", "x * scale * 1", 1), {"First"}),
        (lambda text: text.replace("Third.apply(x, 2.0)", "Third.apply(x, None)"), {"Third"}),
        (lambda text: text.replace("import torch\n", "import torch as t\ntorch = t\n"), {"First", "Second", "Third"}),
    ],
)
def test_only_what_may_be_different_is_analysed(
    change: object, built: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    build = Builder.build

    def noted(self: Builder, record: ClassRecord) -> FunctionClass | None:
        names.append(record.qualname)
        return build(self, record)

    monkeypatch.setattr(Builder, "build", noted)
    text = HEAD + "".join(missing_none(name) for name in ("First", "Second", "Third"))
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    before = checker.check(Document(uri, text, 1, "python"))
    assert names == ["First", "Second", "Third"]
    names.clear()
    assert callable(change)
    changed = change(text)
    assert changed != text
    after = checker.check(Document(uri, changed, 2, "python"))
    assert set(names) == built
    assert len(after.diagnostics) == len(before.diagnostics)


def test_the_first_key_analyses_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of the Functions asks what none before it has asked."""
    names: list[str] = []
    build = Builder.build

    def noted(self: Builder, record: ClassRecord) -> FunctionClass | None:
        names.append(record.qualname)
        return build(self, record)

    monkeypatch.setattr(Builder, "build", noted)
    text = HEAD + missing_none("First") + missing_none("Last").replace("return x", "return torch.no_such_name(x)")
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    before = checker.check(Document(uri, text, 1, "python"))
    names.clear()
    for version in (2, 3):
        text += "print('below')\n"
        after = checker.check(Document(uri, text, version, "python"))
        assert names == []
        assert after.diagnostics == before.diagnostics
    text += "torch.no_such_name = print\n"
    checker.check(Document(uri, text, 4, "python"))
    assert names == ["First", "Last"]


def test_contracts_are_kept_of_functions_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    made = contract._contract

    def noted(function: FunctionClass) -> object:
        names.append(function.name)
        return made(function)

    monkeypatch.setattr(contract, "_contract", noted)
    text = HEAD + missing_none("First") + missing_none("Second")
    changed = text.replace("First.apply(x, 2.0)", "First.apply(x, None)  ")
    calls_moved = text.replace("return Second", "return -Second")
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    numbers = []
    for version, each in enumerate((text, text + "# z", text.replace("grad_output *", "1 *", 1), changed, calls_moved)):
        document = Document(uri, each, version, "python")
        checker.check(document)
        file = checker.model_of(document)
        assert file is not None
        contracts_of(file)
        numbers.append(sorted(names))
        names.clear()
    assert numbers[:3] == [["First", "Second"], [], ["First"]]
    assert "First" in numbers[3]
    assert "Second" in numbers[4]


@pytest.mark.parametrize(
    ("old", "new", "walked"),
    [
        ("ctx.scale\n\n\ndef", "ctx.scale * 1\n\n\ndef", {"backward"}),
        ("x * scale", "x * scale * 1", {"forward"}),
        ("grad_output * ctx", "First.forward(ctx, grad_output, 1) * ctx", {"forward", "backward"}),
        (
            "    @staticmethod\n    def f",
            "    helper = torch.nn\n    @staticmethod\n    def f",
            {"forward", "backward"},
        ),
        ("grad_output * ctx", "helper(grad_output) * ctx", {"backward"}),
        (
            "    return grad_output * ctx.scale",
            "    return grad_output * ctx.scale, grad_output",
            {"forward", "backward"},
        ),
    ],
)
def test_only_methods_that_may_be_different_are_walked(
    old: str, new: str, walked: set[str], tmp_path: Path, interpreted: list[str]
) -> None:
    text = HEAD + "def helper(x):\n    return x\n" + missing_none("First")
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    checker.check(Document(uri, text, 1, "python"))
    assert set(interpreted) == {"forward", "backward"}
    interpreted.clear()
    changed = text.replace(old, new, 1)
    assert changed != text
    checker.check(Document(uri, changed, 2, "python"))
    assert set(interpreted) == walked


LONG = """import torch
from torch.autograd import Function

SCALE = 2
chunks = 3


class Chunk:
    def __init__(self, tensor):
        self.tensor = tensor

    def load(self):
        return self.tensor.clone()


def helper(x):
    return x.mul_(2)


class Long(Function):
    @staticmethod
    def forward(ctx, x, y, mode: str):
        kept = [Chunk(x)]
        ctx.save_for_backward(x, y)
        ctx.mode = mode
        z = x * SCALE
        for at in range(chunks):
            kept.append(Chunk(z))
            z = kept[at].load()
        ctx.chunk = kept[0]
        out = helper(z)
        return out

    @staticmethod
    def backward(ctx, grad):
        def scaled(tensor):
            return tensor * ctx.scale

        x, y = ctx.saved_tensors
        chunk = Chunk(grad)
        pick = lambda tensor: tensor + y
        total = scaled(grad)
        while chunks:
            total = total + pick(x)
            if ctx.mode == "once":
                break
        grad_x = chunk.load() * total
        last = None
        return grad_x, grad_x * SCALE, last


def use(a, b):
    return Long.apply(a, b, "once")
"""
TYPED = [
    "global chunks",
    "SCALE = 3",
    "chunks -= 1",
    "ctx.save_for_backward(x)",
    "x, y = ctx.saved_tensors",
    "grad_x = scaled(chunk)",
    "kept = scaled",
    "def scaled(tensor): return tensor",
    "def helper(x): return x",
    "helper(x)",
    "Long.backward(ctx, x)",
    "other = Chunk(x)",
    "last = (lambda: ctx)",
    "pick(chunk.load())",
    "z = kept[0].load()",
    "return x.view(-1), None, None",
    "del x, y",
    "yield x",
    "import math as chunks",
    "total.add_(grad); y.mul_(2)",
    "nonlocal x",
    "exec(mode)",
    "total = mode.backward.encode(x)",
    "z = mode.forward.encode(x).forward",
    "getattr(Long, 'backward')(ctx, x)",
]


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_when_a_walk_continues_an_earlier_one(tmp_path: Path, seed: int, below: bool) -> None:
    long = with_helpers_below(LONG) if below else LONG
    chance, around = random.Random(seed), Workspace(lambda _: None, (str(tmp_path),))
    (tmp_path / "ctxlint.toml").write_text('select = ["ALL"]\n')
    checker, uri, lines = Checker(around), (tmp_path / "long.py").as_uri(), long.split("\n")
    indented = [at for at, line in enumerate(lines) if line.startswith("        ")]
    typed: dict[int, str] = {}
    for version in range(80):
        if len(typed) > 2:
            typed.pop(chance.choice(sorted(typed)))
        typed[chance.choice(indented)] = "        " + chance.choice(TYPED) + "\n" * below * chance.randrange(3)
        text = "\n".join(line + "\n" * (at in indented) + typed.get(at, "") for at, line in enumerate(lines))
        document = Document(uri, text, version, "python")
        assert shown(checker, document) == shown(Checker(around), document), text


MOVED = """import torch


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(0, 1)

    @staticmethod
    def backward(ctx, g):
        def outside():
            return ctx.low

        return g * outside()
"""


def test_a_method_that_moves_back_to_where_it_was_created(tmp_path: Path) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "moved.py").as_uri()
    for version, text in enumerate(("\n" + MOVED, MOVED, MOVED.replace("(x)\n", "(x)\n\n"))):
        anew = shown(Checker(Workspace(lambda _: None, (str(tmp_path),))), Document(uri, text, version, "python"))
        assert shown(checker, Document(uri, text, version, "python")) == anew


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[cst.CSTNode]:
    """The statements that walks execute, in order."""
    statements: list[cst.CSTNode] = []
    execute_statement = Walk.execute_statement

    def noted(self: Walk, statement: cst.CSTNode, body: cst.BaseSuite) -> None:
        statements.append(statement)
        execute_statement(self, statement, body)

    monkeypatch.setattr(Walk, "execute_statement", noted)
    return statements


@pytest.mark.parametrize("long", [LONG, LONG.replace("z = x * SCALE", "z = mode.codec.forward.encode(x) * SCALE")])
def test_a_walk_begins_at_the_statement_that_is_typed(long: str, tmp_path: Path, walked: list[cst.CSTNode]) -> None:
    numbers = []
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "long.py").as_uri()
    for version, line in enumerate(("", "        tota", "        total", "        total = 1", "        total = 12")):
        walked.clear()
        text = long.replace("\n        return out", f"\n{line}\n        return out")
        checker.check(Document(uri, text, version, "python"))
        numbers.append(len(walked))
    assert numbers[0] > 30
    assert numbers[1:] == [2, 2, 2, 2]


def test_a_walk_continues_after_a_statement_was_half_typed_for_long(tmp_path: Path, walked: list[cst.CSTNode]) -> None:
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "long.py").as_uri()
    half = [f"        if {'x' * number}" for number in range(60)]
    for version, line in enumerate(("", *half, "        if mode: total = 1")):
        walked.clear()
        text = LONG.replace("\n        return out", f"\n{line}\n        return out")
        checker.check(Document(uri, text, version, "python"))
    assert len(walked) <= 4


def test_what_the_project_was_asked_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ops.py").write_text(
        'import torch\n\n\n@torch.library.custom_op("my::f", mutates_args={"t"})\n'
        "def f(t: torch.Tensor) -> None:\n    t.zero_()\n"
    )
    text = f"{HEAD}{missing_none()}".replace(
        "return grad_output", "torch.ops.my.f(grad_output)\n        return grad_output"
    )
    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    readings: list[Reader] = []
    whole_file = Reader.whole_file

    def noted(self: Reader, outside: OutsideFacts) -> SourceFile:
        readings.append(self)
        return whole_file(self, outside)

    monkeypatch.setattr(Reader, "whole_file", noted)
    numbers = []
    for version, more in enumerate(("", "# a", "# an", "x = 1")):
        readings.clear()
        checked = checker.check(Document(uri, f"{text}\n\n{more}\n", version, "python"))
        assert [each.code for each in checked.diagnostics] == ["CTX404", "CTX203"]
        numbers.append(len(readings))
    assert numbers == [2, 1, 1, 1]


def test_helpers_in_other_files_are_parsed_at_once_and_the_document_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = "".join(f"from helpers{number} import twice{number}\n" for number in range(9))
    for number in range(9):
        (tmp_path / f"helpers{number}.py").write_text(f"ONE = 1\n\n\ndef twice{number}(x):\n    return x * 2\n")
    calls = "".join(f"        x = twice{number}(x)\n" for number in range(9))
    text = f"{HEAD}{imports}{missing_none()}".replace("        return x", f"{calls}        return x")
    parsed: list[str] = []
    parse = parsing._parse

    def noted(text: str, first: int = 1) -> ast.Module:
        parsed.append(text)
        return parse(text, first)

    checker, uri = Checker(Workspace(lambda _: None, (str(tmp_path),))), (tmp_path / "a.py").as_uri()
    monkeypatch.setattr(parsing, "_parse", noted)
    checker.check(Document(uri, text, 1, "python"))
    assert sum("ONE" in each for each in parsed) == 9
    assert all("def twice" in each for each in parsed if "ONE" in each)
    parsed.clear()
    checker.check(Document(uri, f"{text}# below\n", 2, "python"))
    assert not any("class" in each or "import" in each for each in parsed)


LAYERS = """
import torch
from torch import nn

from ops import Scale


def scale(x, weight):
    return Scale.apply(x, weight)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return scale(x, self.gain)


def last(x):
    return x
"""


def test_parameters_are_searched_for_once_and_only_where_some_are_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[list[str]] = []

    def search(nodes: Iterator[ast.AST]) -> frozenset[str]:
        each = list(nodes)
        searched.append([node.name for node in each if isinstance(node, ast.ClassDef)])
        return parameters_among(each)

    monkeypatch.setattr(call_sites, "parameters_among", search)
    (tmp_path / "ops.py").write_text(
        HEAD + missing_none().replace(re.findall(r"class (\w+)", missing_none())[0], "Scale")
    )
    checker = Checker(Workspace(lambda _: None, (str(tmp_path),)))
    for version in range(3):
        text = LAYERS.replace("return x\n", f"return x + {version}\n")
        checker.check(Document((tmp_path / "layers.py").as_uri(), text, version, "python"))
    assert searched == [["Layer"]]
