"""The cache neither hides nor invents findings, whatever happens to the files, the cache or the processes that write it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.cache.file_records import reader
from ctxlint.cache.folder_tables import Verdict, Verdicts
from ctxlint.cache.stamp import Stamp
from ctxlint.run.answers import Answering
from ctxlint.source.ast_tree import tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from ctxlint.source.imports import Imports

BASE = """\
import torch


class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        return x * k

    @staticmethod
    def backward(ctx, grad_output):
        return {gradient}
"""
SCALE = """\
from torch.autograd import Function
from pkg.base import Base


class Scale(Base):
    @staticmethod
    def forward(ctx, x, k{default}):
        ctx.k = k
        return x * k


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2{more}
"""
CALLER = """\
from pkg.scale import Scale as S


def call(x):
    return S.apply(x{arguments})
"""
OPERATOR = 'import torch\n\ntorch.library.define("demo::fill", "(Tensor{written} x) -> ()")\n'
OPERATOR_USED = """\
import torch


class Filled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch.ops.demo.fill(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2
"""
READS_SCALE = """\
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale
"""
PLAIN = "import os\n\n\ndef f():\n    return {number}\n"


def texts(choose: random.Random) -> dict[str, str]:
    """A project in one of many states; some of its findings depend on other files."""
    found = {
        "pkg/__init__.py": choose.choice(["", "from pkg.scale import Scale\n"]),
        "pkg/base.py": BASE.format(gradient=choose.choice(["grad_output, None", "grad_output", "grad_output, 1, 2"])),
        "pkg/scale.py": SCALE.format(default=choose.choice(["", "=1"]), more=choose.choice(["", ", None", ", 1"])),
        "pkg/plain.py": PLAIN.format(number=choose.choice([1, 2, 3])),
        "use.py": CALLER.format(arguments=choose.choice(["", ", 2", ", 2, 3", ", k=2"])),
    }
    if choose.random() < 0.2:
        found["pkg/plain.py"] = found["pkg/scale.py"]
    if choose.random() < 0.2:
        del found[choose.choice(["pkg/base.py", "use.py", "pkg/__init__.py"])]
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for path in folder.rglob("*.py"):
        if str(path.relative_to(folder)).replace(os.sep, "/") not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def run(folder: Path, *options: str) -> tuple[int, str]:
    command = [
        sys.executable,
        "-m",
        "ctxlint",
        "--isolated",
        "--select",
        "ALL",
        "--output-format",
        "json",
        *options,
        ".",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's cache folder, still empty."""
    from ctxlint.cache import folder

    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    forget(folder)
    yield home / "ctxlint"
    forget(folder)


def forget(folder: ModuleType) -> None:
    """Forget what a process keeps in memory, as if a new one had started."""
    from ctxlint.cache.run import _place

    folder.forget()
    _place.cache_clear()


def results_in(cache: Path) -> Path:
    [found] = cache.glob("*.cache")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, texts(random.Random(0)))
    (tmp_path / ".git").mkdir()
    settle(tmp_path)
    return tmp_path


def settle(folder: Path) -> None:
    """Age the files: results of files that changed within the last seconds are not cached."""
    old = time.time() - 60
    for path in folder.rglob("*.py"):
        os.utime(path, (old, old))


@pytest.fixture
def in_process(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the command in this process, which is faster; what it keeps in memory is cleared each time."""
    from ctxlint.cli import main
    from ctxlint.run.in_project import forget_other_files
    from ctxlint.source import modules

    # The clock of the file system ticks slowly; here, each change is meant to be seen at once.
    monkeypatch.setattr("ctxlint.cache.stamp._SETTLED", 0)
    monkeypatch.chdir(project)

    def call(*options: str) -> str:
        forget_other_files()
        modules.forget()
        code = main(["check", "--isolated", "--select", "ALL", "--output-format", "json", *options, "."])
        assert code in (0, 1)
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(project: Path, in_process: Callable[..., str], seed: int) -> None:
    choose = random.Random(seed)
    outputs = set()
    for _ in range(12):
        write(project, texts(choose))
        if choose.random() < 0.5:
            for path in project.rglob("*.py"):  # times that go back, or stay, say nothing
                moment = time.time() - choose.choice([0, 60, 3600])
                os.utime(path, (moment, moment))
        options = choose.choice([(), ("--ignore", "CTX2"), ("--target-torch", "2.1")])
        expected = in_process("--no-cache", *options)
        assert in_process(*options) == expected
        assert in_process(*options) == expected
        outputs.add(expected)
    assert len(outputs) > 5


def test_a_file_that_no_import_leads_to(
    project: Path, in_process: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It declares an operator of the project; the cache knows whether it does, as long as it has not changed."""
    files = {"use.py": OPERATOR_USED, "more/kernels.py": OPERATOR.format(written="(a!)"), "plain.py": PLAIN}
    write(project, files)
    assert "CTX401" in in_process()
    answered: list[str] = []

    in_file = Answering.in_file

    def noted(self: Answering, path: str, imports: Imports) -> bool:
        answered.append(path)
        return in_file(self, path, imports)

    parsed: list[str] = []

    def parse(text: str) -> object:
        parsed.append(text)
        return tree_of(text)

    monkeypatch.setattr(Answering, "in_file", noted)
    monkeypatch.setattr("ctxlint.run.answers.tree_of", parse)
    files["use.py"] += "\n# changed\n"
    write(project, files)
    assert "CTX401" in in_process()
    assert answered == ["use.py"]
    assert parsed == []
    write(project, {**files, "more/kernels.py": OPERATOR.format(written="")})
    assert "CTX401" not in in_process()
    assert answered == ["use.py", os.path.join("more", "kernels.py")]


def test_attributes_that_other_files_set(
    project: Path, in_process: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which files set an attribute that a Function reads of ctx is known, as long as they have not changed."""
    stores = "def prepare(node):\n    node.scale = 2\n"
    files = {"own.py": READS_SCALE, "more.py": READS_SCALE, "prepare.py": stores}
    write(project, files)
    assert "CTX306" not in in_process()
    parsed: list[int] = []

    def parse(text: str) -> object:
        parsed.append(len(text))
        return tree_of(text)

    monkeypatch.setattr("ctxlint.model.index.attribute_stores.tree_of", parse)
    write(project, {**files, "own.py": f"{READS_SCALE}\n"})
    assert "CTX306" not in in_process()
    assert parsed == [len(READS_SCALE) + 1, len(stores)]
    write(project, {**files, "prepare.py": "def prepare(node):\n    return node.scale\n"})
    assert in_process() == in_process("--no-cache")
    assert "CTX306" in in_process()


def test_the_second_run_reads_no_code(project: Path) -> None:
    first = run(project)
    code = "import sys\nfrom ctxlint.cli import main\n"
    code += "main(['check', '--isolated', '--select', 'ALL', '--output-format', 'json', '.'])\n"
    code += "assert 'libcst' not in sys.modules, 'it was linted again'\n"
    second = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    assert (second.returncode, second.stdout) == (0, first[1]), second.stderr


def test_it_is_the_users_own_folder(project: Path, cache: Path) -> None:
    before = sorted(project.rglob("*"))
    run(project)
    assert sorted(project.rglob("*")) == before
    assert (cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    names = {path.name for path in cache.iterdir()}
    assert names == {".gitignore", "CACHEDIR.TAG", "key", results_in(cache).name}
    if os.name == "posix":
        modes = [path.stat().st_mode & 0o777 for path in (cache, cache / "key", results_in(cache))]
        assert modes == [0o700, 0o600, 0o600]


@pytest.mark.parametrize("options", [("--no-cache",), ("--fix",), ("--diff",)])
def test_who_goes_without(project: Path, cache: Path, options: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, "-m", "ctxlint", "--isolated", *options, "."], cwd=project, check=False)
    assert not cache.exists()


@pytest.mark.parametrize("damage", ["empty", "half", "flipped", "foreign", "folder", "link", "text", "another key"])
def test_a_damaged_or_foreign_cache_counts_as_empty(
    project: Path, cache: Path, in_process: Callable[..., str], damage: str
) -> None:
    from ctxlint.cache import folder
    from ctxlint.cache.identity import identity

    expected = in_process()
    path = results_in(cache)
    data = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    elif damage == "link":
        path.rename(project / "elsewhere")
        path.symlink_to(project / "elsewhere")
    elif damage == "another key":
        (cache / "key").write_bytes(b"k" * 32)
        forget(folder)
    else:
        middle = len(data) // 2
        path.write_bytes(
            {
                "empty": b"",
                "half": data[:middle],
                "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
                "foreign": data.replace(identity().encode(), b"0" * len(identity())),
                "text": b"hello\n",
            }[damage]
        )
    assert in_process() == expected
    assert in_process() == expected
    if damage == "link":
        assert (project / "elsewhere").read_bytes() == data


CLEAN = json.dumps([[], [], [], 0, 0, None, None])
HIDES = [
    lambda tables: [
        tables.pop("runs"),
        *(row.__setitem__(2, [False, None, ""]) for row in tables["seen"].values()),
    ],
    lambda tables: [
        tables.pop("runs"),
        *(kept.__setitem__(3, CLEAN) for row in tables["found"].values() for kept in row[2][0]),
    ],
    lambda tables: [each.__setitem__(1, CLEAN) for row in tables["runs"].values() for each in row[2][5]],
]
"""What somebody may write into a cache so that nothing is found: there is no Function anywhere; nothing is wrong in a
file; nothing was wrong in the whole run."""


def head_of(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:3])


def forged(data: bytes, tables: dict[str, Any], key: bytes) -> bytes:
    """A cache file with the header of another one."""
    from ctxlint.cache.store import _seal

    head, body = head_of(data), json.dumps(tables).encode()
    return head + _seal(head, body, key) + body


def tables_in(data: bytes) -> dict[str, Any]:
    tables = json.loads(data[len(head_of(data)) + 32 :])
    assert isinstance(tables, dict)
    return tables


@pytest.mark.parametrize("hide", HIDES)
@pytest.mark.parametrize("where", ["the old place", "cache-dir"])
def test_a_cache_that_comes_with_the_checkout_hides_nothing(
    project: Path, cache: Path, in_process: Callable[..., str], where: str, hide: Callable[[dict[str, Any]], object]
) -> None:
    """An attacker knows everything except the key."""
    options = () if where == "the old place" else ("--cache-dir=forged",)
    expected = in_process(*options)
    assert json.loads(expected)
    folder = project / (".ctxlint_cache" if where == "the old place" else "forged")
    if where == "the old place":
        shutil.copytree(cache, folder)
        (cache / "key").unlink()
    path = results_in(folder)
    data = path.read_bytes()
    tables = tables_in(data)
    hide(tables)
    path.write_bytes(forged(data, tables, b"k" * 32))
    shutil.copyfile(path, folder / "results.bin")
    assert in_process(*options) == expected
    # With the key, it would have worked: this is what the seal is for.
    if where == "cache-dir":
        path.write_bytes(forged(data, tables, (cache / "key").read_bytes()))
        assert in_process(*options) != expected


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.__setitem__(2, [[["00", [], []]]]),
        lambda row: row.__setitem__(2, None),
        lambda row: row.__setitem__(0, "today"),
        lambda row: row.__setitem__(1, 3),
        lambda row: row.clear(),
        lambda row: [kept.__setitem__(3, "[" * 100_000) for kept in row[2][0]],
        lambda row: [kept.__setitem__(3, kept[3].replace("scale.py", "other.py")) for kept in row[2][0]],
        lambda row: [kept.__setitem__(0, "zz") for kept in row[2][0]],
    ],
)
def test_the_reader_is_strict(
    cache: Path, in_process: Callable[..., str], change: Callable[[list[Any]], object]
) -> None:
    """Authenticated entries are read as plain data of the expected shape, or rejected."""
    expected = in_process()
    path = results_in(cache)
    data = path.read_bytes()
    tables = tables_in(data)
    for row in tables["found"].values():
        change(row)
    path.write_bytes(forged(data, tables, (cache / "key").read_bytes()))
    assert in_process() == expected


def test_links_in_a_committed_cache_are_not_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory, in_process: Callable[..., str]
) -> None:
    """One link has the name of an earlier kind of temporary file, with the id of this process."""
    outside = tmp_path_factory.mktemp("outside")
    secret = outside / "secret"
    secret.write_text("precious")
    expected = in_process("--cache-dir=stored")
    shutil.copytree(project / "stored", project / ".ctxlint_cache")
    for place in (project / "stored", project / ".ctxlint_cache"):
        for each in [*place.iterdir(), place / "results.bin", place / f"results.bin.{os.getpid()}.new"]:
            if each.name != "CACHEDIR.TAG":
                each.unlink(missing_ok=True)
                each.symlink_to(secret)
    for options in ((), ("--cache-dir=stored",), ("--cache-dir=.ctxlint_cache",)):
        assert in_process(*options) == expected
        assert secret.read_text() == "precious"
    for place in (project / "stored", project / ".ctxlint_cache"):
        shutil.rmtree(place)
        place.symlink_to(outside, target_is_directory=True)
    assert in_process() == expected
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", "--isolated", "--cache-dir=stored", "."],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "through a link in the project; set the path of the folder itself" in done.stderr
    assert [each.name for each in outside.iterdir()] == ["secret"]


def test_a_configuration_names_no_folder_outside(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "new"
    (project / "ctxlint.toml").write_text(f"cache-dir = {json.dumps(str(outside))}\n")
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", "."], cwd=project, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "ctxlint: error: ctxlint.toml:1: `cache-dir`: expected a folder next to this file or below;"
        " for other folders use --cache-dir\n"
    )
    assert not outside.exists()


@pytest.mark.parametrize("home", ["a file", "others write", "~", "in the checkout"])
def test_no_home(project: Path, tmp_path_factory: pytest.TempPathFactory, home: str) -> None:
    """Nothing is cached, no folder of the project is used as home, and the user is warned once."""
    place = tmp_path_factory.mktemp("home") / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(place)}
    if home == "a file":
        place.write_text("in the way")
    elif home == "others write":
        (place / "ctxlint").mkdir(parents=True)
        (place / "ctxlint").chmod(0o777)
        if os.name != "posix":
            pytest.skip("modes say nothing there")
    elif home == "~":
        environment.update(XDG_CACHE_HOME="", HOME="~", USERPROFILE="~", LOCALAPPDATA="~")
    else:
        environment["XDG_CACHE_HOME"] = str(project / "home")
        (project / "home" / "ctxlint").mkdir(parents=True, mode=0o700)
        (project / "home" / "ctxlint" / "key").write_bytes(b"k" * 32)
        (project / "home" / "ctxlint" / "key").chmod(0o600)
    before = sorted(project.rglob("*"))
    command = [sys.executable, "-m", "ctxlint", "--isolated", "--select=ALL", "--output-format=json"]
    quiet = subprocess.run([*command, "."], cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (*run(project, "--no-cache"), "")
    said = subprocess.run(
        [*command, "-v", "."], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert said.stderr.count("Cache disabled: ") == 1
    assert sorted(project.rglob("*")) == before
    if home == "others write":
        assert list((place / "ctxlint").iterdir()) == []


def test_a_key_from_the_environment(project: Path, cache: Path, tmp_path: Path) -> None:
    """As in a container whose cache survives but whose home does not."""
    environment = {**os.environ, "CTXLINT_CACHE_KEY": "a secret", "CTXLINT_CACHE_DIR": str(tmp_path / "kept")}
    code = "import sys\nfrom ctxlint.cli import main\nmain(['check', '--isolated', '-q', '.'])\nprint('libcst' in sys.modules)"
    outputs = [
        subprocess.run([sys.executable, "-c", code], cwd=project, env=each, capture_output=True, text=True, check=True)
        for each in (environment, environment, {**environment, "CTXLINT_CACHE_KEY": "another"})
    ]
    assert [each.stdout.split()[-1] for each in outputs] == ["True", "False", "True"]
    assert not cache.exists()


def test_several_at_once_and_some_killed(project: Path, cache: Path) -> None:
    expected = run(project, "--no-cache")
    command = [sys.executable, "-m", "ctxlint", "--isolated", "--select", "ALL", "--output-format", "json", "."]
    for round_ in range(2):
        shutil.rmtree(cache, ignore_errors=True)
        running = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        time.sleep(0.3 + 0.4 * round_)
        running[0].kill()
        outputs = [each.communicate()[0] for each in running[1:]]
        running[0].communicate()
        assert outputs == [expected[1]] * 3
    assert run(project) == expected
    assert run(project) == expected


def test_old_entries_go(
    project: Path, cache: Path, in_process: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process()
    other = cache / "gone-0123.cache"
    other.write_text("of a project that nobody lints any more")
    os.utime(other, (time.time() - 40 * 86_400,) * 2)
    (project / "use.py").unlink()
    now = time.time()
    monkeypatch.setattr("ctxlint.cache.store.time.time", lambda: now + 31 * 86_400)
    in_process()
    assert b"use.py" not in results_in(cache).read_bytes()
    assert not other.exists()


def test_what_is_shown_of_findings_is_the_same(in_process: Callable[..., str]) -> None:
    for options in (("--output-format", "full"), ("--output-format", "sarif"), ("--statistics",)):
        expected = in_process("--no-cache", *options)
        in_process(*options)
        assert in_process(*options) == expected


def test_a_time_in_the_future_hides_no_recent_change() -> None:
    now, minute = time.time_ns(), 60_000_000_000
    assert Stamp(1, now - minute, now - minute, 1).is_settled
    assert not Stamp(1, now + minute, now, 1).is_settled
    assert not Stamp(1, now, now - minute, 1).is_settled


def test_every_field_of_what_is_stored_can_be_read() -> None:
    """A field of another type than these, such as a set, would fail in each run that stores it."""
    reader(Verdict)
    reader(Verdicts)
