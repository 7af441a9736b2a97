"""Results of earlier sessions are shown for unchanged files, and only for these."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.editor.checking import Checker
from ctxlint.editor.diagnostics import TAGS
from ctxlint.editor.documents import Document
from ctxlint.editor.earlier import EarlierResults
from ctxlint.editor.worker import Worker
from ctxlint.editor.workspace import ClientSettings, Workspace
from ctxlint.rules import all_rules
from ctxlint.rules.base import Category
from ctxlint.run.in_project import forget_other_files
from ctxlint.source.reading import OPEN
from tests.editor.texts import ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.editor.conftest import Start

PROGRAMS = sorted((Path(__file__).parents[2] / "fixtures" / "programs").glob("*/*.py"))


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    forget_other_files()
    yield
    OPEN.clear()
    forget_other_files()


def workspace(folder: Path, client: ClientSettings | None = None) -> Workspace:
    return Workspace(lambda _: None, (str(folder),), client or ClientSettings())


def opened(path: Path) -> Document:
    return Document(path.as_uri(), path.read_text(), 1, "python")


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_is_stored_is_what_a_check_gives(tmp_path: Path) -> None:
    for path in PROGRAMS:
        document = opened(written(tmp_path / path.name, path.read_text()))
        around = workspace(tmp_path)
        checked = Checker(around).check(document)
        if not checked.result.linted:
            continue
        assert EarlierResults(around).checked(document) is None
        EarlierResults(around).store(document)
        earlier = EarlierResults(workspace(tmp_path)).checked(document)
        assert earlier is not None
        assert (earlier.diagnostics, earlier.result.hidden) == (checked.diagnostics, checked.result.hidden), path
        assert Checker(around).fixed(earlier, lambda: None) == Checker(around).fixed(checked, lambda: None), path


def test_the_server_may_run_in_a_folder_around_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(os.environ["XDG_CACHE_HOME"]).parent)
    path = written(tmp_path / "scale.py", ONE)
    written(tmp_path / "train.py", "from scale import Scale\n\ndef train(x):\n    return Scale.apply(x, 2.0)\n")
    EarlierResults(workspace(tmp_path)).store(opened(path))
    assert EarlierResults(workspace(tmp_path)).checked(opened(path)) is not None


HELPER = "def twice(x):\n    return x * 2\n"
USER = ONE.replace("import torch\n", "import torch\nfrom helper import twice\n").replace("x * scale", "twice(x)")


def stored(folder: Path) -> Path:
    """A file with a stored result, and the helper that it imports."""
    written(folder / "helper.py", HELPER)
    path = written(folder / "user.py", USER)
    EarlierResults(workspace(folder)).store(opened(path))
    assert EarlierResults(workspace(folder)).checked(opened(path)) is not None
    forget_other_files()
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda path: written(path, USER + "\n"),
        lambda path: written(path.with_name("helper.py"), HELPER.replace("x * 2", "x.mul_(2)")),
        lambda path: path.with_name("helper.py").unlink(),
        lambda path: written(path.with_name("caller.py"), "from user import Scale\n\nScale.apply(1, 2)\n"),
        lambda path: written(path.with_name("ctxlint.toml"), 'select = ["ALL"]\n'),
        lambda path: OPEN.update({str(path.with_name("helper.py")): "twice = None\n"}),
    ],
    ids=["text", "helper", "no helper", "caller", "settings", "open helper"],
)
def test_it_holds_only_as_long_as_everything_is_the_same(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = stored(tmp_path)
    change(path)
    assert EarlierResults(workspace(tmp_path)).checked(opened(path)) is None


def test_it_holds_only_for_the_same_settings_of_the_client(tmp_path: Path) -> None:
    path = stored(tmp_path)
    assert (
        EarlierResults(workspace(tmp_path, ClientSettings(table=(("select", ["ALL"]),)))).checked(opened(path)) is None
    )
    unsaved = Document(path.as_uri(), USER + "# typed\n", 2, "python")
    assert EarlierResults(workspace(tmp_path)).checked(unsaved) is None


def test_nothing_heavy_is_imported_for_it(tmp_path: Path) -> None:
    path = stored(tmp_path)
    code = f"""
import sys
from ctxlint.editor import language_server
from ctxlint.editor.documents import Document
from ctxlint.editor.earlier import EarlierResults
from ctxlint.editor.workspace import Workspace
text = open({str(path)!r}).read()
document = Document({path.as_uri()!r}, text, 1, "python")
assert EarlierResults(Workspace(print, ({str(tmp_path)!r},))).checked(document) is not None
assert "libcst" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_session_shows_it_and_then_checks_the_changes(tmp_path: Path, start: Start) -> None:
    path = written(tmp_path / "scale.py", ONE)
    EarlierResults(workspace(tmp_path)).store(opened(path))
    client = start(folders=[tmp_path])
    uri = path.as_uri()
    client.open(uri, ONE)
    assert [each["code"] for each in client.pushed(uri)] == ["CTX203"]
    client.change(uri, ONE.replace("ctx.scale\n", "ctx.scale, None\n"), 2)
    assert client.pushed(uri, 2) == []
    client.change(uri, ONE, 3)
    assert [each["code"] for each in client.pushed(uri, 3)] == ["CTX203"]
    assert client.actions(uri, ["source.fixAll"])


def test_tags_are_what_the_rules_say() -> None:
    modern = {rule.code for rule in all_rules() if rule.category is Category.MODERNIZE}
    unnecessary = {rule.code for rule in all_rules() if rule.unnecessary}
    assert {code for code, tag in TAGS.items() if tag.name == "Deprecated"} == modern
    assert {code for code, tag in TAGS.items() if tag.name == "Unnecessary"} == unnecessary - modern


def test_work_that_can_wait_waits_for_a_pause() -> None:
    worker, order, done = Worker(), list[str](), threading.Event()

    def last() -> None:
        order.append("later")
        done.set()

    worker.when_idle(last, key=1, after=0.4)
    worker.when_idle(lambda: order.append("soon"), key=2, after=0.1)
    for name in ("first", "second"):
        worker.submit(lambda name=name: order.append(name)).result(10)  # type: ignore[misc]
        time.sleep(0.02)
    assert done.wait(10)
    assert order == ["first", "second", "soon", "later"]
