"""Which rules are on, which fixes count, and what a configuration file may say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ctxlint.config.configuration import Configuration, read_configuration
from ctxlint.config.options import version_allowed
from ctxlint.config.project_files import ConfigurationError
from ctxlint.config.settings import PerFileIgnore, Selection, Settings
from ctxlint.fix import Applicability
from tests import stand_ins


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_ins.install(monkeypatch)
    monkeypatch.chdir(tmp_path)


def _on(code: str = "CTX211", name: str = "wrong-word", *, default: bool = True, **settings: Any) -> bool:
    return Settings(**settings).is_selected(code, name, default=default)


@pytest.mark.parametrize(
    ("settings", "default", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"select": ("ALL",)}, False, True),
        ({"select": ("CTX2",)}, False, True),
        ({"select": ("CTX",)}, False, True),
        ({"select": ("CTX211",)}, False, True),
        ({"select": ("wrong-word",)}, False, True),
        ({"select": ("CTX3",)}, True, False),
        ({"select": ()}, True, False),
        ({"extend_select": ("CTX21",)}, False, True),
        ({"ignore": ("CTX2",)}, True, False),
        ({"ignore": ("ALL",)}, True, False),
        ({"ignore": ("wrong-word",)}, True, False),
        # the most specific selector decides, ignore wins a tie
        ({"select": ("CTX211",), "ignore": ("CTX2",)}, False, True),
        ({"select": ("CTX2",), "ignore": ("CTX211",)}, True, False),
        ({"select": ("wrong-word",), "ignore": ("CTX21",)}, False, True),
        ({"select": ("CTX2",), "ignore": ("CTX2",)}, True, False),
        ({"select": ("ALL",), "ignore": ("ALL",)}, True, False),
        ({"extend_select": ("CTX211",), "ignore": ("CTX2",)}, False, True),
    ],
)
def test_selection(settings: dict[str, Any], default: bool, expected: bool) -> None:
    assert _on(default=default, **settings) is expected


@pytest.mark.parametrize(
    ("file", "command_line", "expected"),
    [
        ({"select": ("CTX211",)}, Selection(ignore=("CTX2",)), False),
        ({"ignore": ("CTX211",)}, Selection(select=("CTX2",)), True),
        ({"ignore": ("CTX211",)}, Selection(extend_select=("CTX2",)), True),
        ({"select": ("CTX2",)}, Selection(select=("CTX3",)), False),
        ({"select": ("CTX2",)}, Selection(extend_select=("CTX3",)), True),
        ({"select": ("CTX3",)}, Selection(extend_select=("CTX3",)), False),
    ],
)
def test_the_command_line_comes_on_top_of_the_file(
    file: dict[str, Any], command_line: Selection, expected: bool
) -> None:
    assert _on(**file, command_line=command_line) is expected


def test_what_cannot_be_read_is_said_whatever_is_selected() -> None:
    for code, name in (("CTX901", "invalid-syntax"), ("CTX902", "io-error")):
        assert _on(code, name, select=("CTX2",))
        assert _on(code, name, command_line=Selection(select=("CTX2",)))
        assert not _on(code, name, ignore=(code,))
        assert not _on(code, name, command_line=Selection(select=("CTX2",), ignore=(name,)))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"unfixable": ("CTX2",)}, False),
        ({"fixable": ("CTX3",)}, False),
        ({"fixable": ("CTX211",), "unfixable": ("CTX2",)}, True),
        ({"fixable": ("ALL",), "unfixable": ("wrong-word",)}, False),
    ],
)
def test_fixable(settings: dict[str, Any], expected: bool) -> None:
    assert Settings(**settings).is_fixable("CTX211", "wrong-word") is expected


@pytest.mark.parametrize(
    ("given", "safe", "unsafe", "expected"),
    [
        ("safe", (), (), "safe"),
        ("unsafe", (), (), "unsafe"),
        ("unsafe", ("CTX2",), (), "safe"),
        ("safe", (), ("CTX2",), "unsafe"),
        ("safe", ("CTX2",), ("CTX2",), "unsafe"),
        ("unsafe", ("CTX211",), ("CTX2",), "safe"),
        ("display", ("CTX2",), (), "display"),
        ("display", (), ("CTX2",), "display"),
    ],
)
def test_applicability(given: str, safe: tuple[str, ...], unsafe: tuple[str, ...], expected: str) -> None:
    settings = Settings(extend_safe_fixes=safe, extend_unsafe_fixes=unsafe)
    assert settings.applicability("CTX211", "wrong-word", Applicability(given)) is Applicability(expected)


def test_target_torch() -> None:
    assert not Settings().torch.fall_below(2, 4)
    assert Settings(target_torch="2.1").torch.fall_below(2, 4)
    assert Settings(target_torch=">=2.1,<2.7", project_torch=(">=2.10",)).torch.reach(2, 6)
    assert not Settings(target_torch=">=2.1,<2.7", project_torch=(">=2.10",)).torch.reach(2, 7)
    assert not Settings(project_torch=(">=2.10",)).torch.fall_below(2, 10)


# ---------------------------------------------------------------------------------------------------------------------
# Files


def _write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key_of_a_file() -> None:
    settings = read_configuration(
        _write(
            "pyproject.toml",
            """
[tool.ctxlint]
select = ["CTX2", "plain-word"]
extend-select = ["CTX302"]
ignore = ["CTX212"]
fixable = ["CTX2"]
unfixable = ["CTX213"]
extend-safe-fixes = ["CTX212"]
extend-unsafe-fixes = ["CTX211"]
fix = true
unsafe-fixes = true
show-fixes = true
exclude = ["old", "third_party/*.py"]
extend-exclude = ["./new/"]
force-exclude = true
respect-gitignore = false
target-torch = "2.4"
output-format = "concise"
required-version = ">=0.1"
baseline = "lint/known.json"
cache-dir = ".cache/ctxlint"

[tool.ctxlint.per-file-ignores]
"tests/*" = ["CTX2"]
"!src/*" = ["plain-word"]
""",
        )
    )
    here = str(Path.cwd())
    assert settings == Settings(
        select=("CTX2", "plain-word"),
        extend_select=("CTX302",),
        ignore=("CTX212",),
        fixable=("CTX2",),
        unfixable=("CTX213",),
        extend_safe_fixes=("CTX212",),
        extend_unsafe_fixes=("CTX211",),
        fix=True,
        unsafe_fixes=True,
        show_fixes=True,
        exclude=("old", f"{here}/third_party/*.py"),
        extend_exclude=(f"{here}/new",),
        force_exclude=True,
        respect_gitignore=False,
        target_torch="2.4",
        output_format="concise",
        required_version=">=0.1",
        baseline=f"{here}/lint/known.json",
        cache_dir=f"{here}/.cache/ctxlint",
        per_file_ignores=(
            PerFileIgnore(f"{here}/tests/*", ("CTX2",)),
            PerFileIgnore(f"{here}/src/*", ("plain-word",), negated=True),
        ),
        root=here,
        config_file=os.path.join(here, "pyproject.toml"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.ctxlint]\nselct = []\n", "pyproject.toml:2: unknown key `selct`; did you mean `select`?"),
        (
            "[tool.ctxlint]\nignore = []\n\n  'extend_select' = []\n",
            "pyproject.toml:4: unknown key `extend_select`; did you mean `extend-select`?",
        ),
        ("tool.ctxlint.zzz = 1\n", "pyproject.toml:1: unknown key `zzz`"),
        ("[tool]\nctxlint = { zzz = 1 }\n", "pyproject.toml:2: unknown key `zzz`"),
        ("\n[tool.ctxlint.zzz]\nq = 1\n", "pyproject.toml:2: unknown key `zzz`"),
        (
            "[project]\nselect = 1\n[tool.ctxlint]\n# x\nselect = 'CTX2'\n",
            "pyproject.toml:5: `select`: expected a list of strings, got a string",
        ),
        (
            "[tool.ctxlint]\nselect = [1]\n",
            "pyproject.toml:2: `select`: expected a list of strings, got a list that contains a number",
        ),
        ("[tool.ctxlint]\nfix = 1\n", "pyproject.toml:2: `fix`: expected true or false, got a number"),
        (
            "[tool.ctxlint]\nselect = ['CTX999']\n",
            "pyproject.toml:2: `select`: unknown rule selector `CTX999`",
        ),
        (
            "[tool.ctxlint]\nselect = ['wrong-wrd']\n",
            "pyproject.toml:2: `select`: unknown rule selector `wrong-wrd`; did you mean `wrong-word`?",
        ),
        (
            "[tool.ctxlint]\noutput-format = 'sarf'\n",
            "pyproject.toml:2: `output-format`: unknown output format `sarf`; did you mean `sarif`?",
        ),
        (
            "[tool.ctxlint]\ntarget-torch = 'new'\n",
            'pyproject.toml:2: `target-torch`: expected a version such as "2.4" or a range such as ">=2.1,<2.7", got "new"',
        ),
        (
            "[tool.ctxlint]\nper-file-ignores = ['CTX2']\n",
            "pyproject.toml:2: `per-file-ignores`: expected a table of globs and lists of rules, got a list",
        ),
        (
            "[tool.ctxlint]\nrequired-version = '>=99'\n",
            "pyproject.toml:2: this is ctxlint 0.1.0, but `>=99` is required",
        ),
        (
            "[tool.ctxlint]\nrequired-version = '<0.1,new'\n",
            'pyproject.toml:2: `required-version`: expected a version range such as ">=0.1,<1", got "<0.1,new"',
        ),
        (
            "[tool.ctxlint]\nextra-bases = ['mylib.Base', 'KernelFunction']\n",
            'pyproject.toml:2: `extra-bases`: expected names such as "mylib.autograd.KernelFunction", got "KernelFunction"',
        ),
        (
            "[tool.ctxlint]\nextra-bases = ['my lib.Base']\n",
            'pyproject.toml:2: `extra-bases`: expected names such as "mylib.autograd.KernelFunction", got "my lib.Base"',
        ),
        (
            "[tool.ctxlint]\nper-file-ignores = { 'a.py' = 'CTX2' }\n",
            "pyproject.toml:2: `per-file-ignores`: `a.py`: expected a list of strings, got a string",
        ),
        ("[tool]\nctxlint = []\n", "pyproject.toml:2: `tool.ctxlint`: expected a table, got a list"),
        ('[tool]\nctxlint = ""\n', "pyproject.toml:2: `tool.ctxlint`: expected a table, got a string"),
        ("[tool]\nctxlint = 3\n", "pyproject.toml:2: `tool.ctxlint`: expected a table, got a number"),
        ("[tool.ctxlint]\nselect = ?\n", "pyproject.toml:2:10: not valid TOML"),
        (
            "[tool.ctxlint]\nextend = 'gone.toml'\n",
            "pyproject.toml:2: `extend`: gone.toml: cannot be read: No such file or directory",
        ),
        (
            "[tool.ctxlint]\nextend = 'pyproject.toml'\n",
            "pyproject.toml:2: the configuration files extend each other in a cycle",
        ),
    ],
)
def test_a_wrong_file_is_an_error_that_says_where(text: str, message: str) -> None:
    _write("pyproject.toml", text)
    with pytest.raises(ConfigurationError) as caught:
        Configuration().settings_for(".")
    said = str(caught.value)
    assert said.startswith(message)
    if "did you mean" not in message and "unknown key" in message:
        assert said == message


def test_the_nearest_file_with_a_table_counts() -> None:
    _write("pyproject.toml", "[tool.ctxlint]\nselect = ['CTX2']\n")
    _write("a/pyproject.toml", "[project]\nname = 'not-about-ctxlint'\n")
    _write("a/b/pyproject.toml", "[tool.ctxlint]\nselect = ['CTX3']\n")
    _write("a/c/ctxlint.toml", "select = ['CTX4']\n")
    _write("a/c/pyproject.toml", "[tool.ctxlint]\nselect = ['CTX5']\n")
    _write("a/d/.ctxlint.toml", "select = ['CTX5']\n")
    _write("a/d/ctxlint.toml", "select = ['CTX4']\n")
    configuration = Configuration()
    chosen = {name: configuration.settings_for(name).select for name in (".", "", "a", "a/b", "a/b/x/y", "a/c", "a/d")}
    assert chosen == {
        ".": ("CTX2",),
        "": ("CTX2",),
        "a": ("CTX2",),
        "a/b": ("CTX3",),
        "a/b/x/y": ("CTX3",),
        "a/c": ("CTX4",),
        "a/d": ("CTX5",),
    }


def test_a_file_can_extend_another() -> None:
    _write("base/pyproject.toml", "[tool.ctxlint]\nselect = ['CTX2']\nextend-select = ['CTX301']\nfix = true\n")
    file = _write("ctxlint.toml", "extend = 'base/pyproject.toml'\nextend-select = ['CTX302']\nselect = ['CTX4']\n")
    settings = read_configuration(file)
    assert (settings.select, settings.extend_select, settings.fix) == (("CTX4",), ("CTX301", "CTX302"), True)


def test_isolated_and_a_file_by_name() -> None:
    _write("pyproject.toml", "[tool.ctxlint]\nselect = ['CTX2']\n")
    other = _write("other.toml", "select = ['CTX3']\n")
    assert Configuration(isolated=True).settings_for(".").select is None
    assert Configuration(file=str(other)).settings_for(".").select == ("CTX3",)


def test_a_key_on_the_command_line() -> None:
    _write("pyproject.toml", "[tool.ctxlint]\nselect = ['CTX2']\nfix = true\n")
    settings = Configuration(inline=("select = ['CTX3']", "target-torch = '2.4'")).settings_for(".")
    assert (settings.select, settings.fix, settings.target_torch) == (("CTX3",), True, "2.4")
    for line, message in {
        "selct = []": "--config: unknown key `selct`; did you mean `select`?",
        "fix = 3": "--config: `fix`: expected true or false, got a number",
        "fix = ": "--config 'fix = ' is neither an existing file nor a `key = value` pair of TOML",
    }.items():
        with pytest.raises(ConfigurationError) as caught:
            Configuration(inline=(line,)).settings_for(".")
        assert str(caught.value).startswith(message)


def test_per_file_ignores() -> None:
    _write(
        "pyproject.toml",
        "[tool.ctxlint.per-file-ignores]\n'tests/*' = ['CTX2']\n'conftest.py' = ['CTX3']\n'!src/**' = ['CTX4']\n",
    )
    settings = Configuration().settings_for(".")

    def ignored(path: str, code: str) -> bool:
        return settings.is_ignored_in(path, code, "")

    assert ignored("tests/a.py", "CTX211")
    assert ignored(str(Path("tests/deep/a.py").resolve()), "CTX211")
    assert not ignored("tests/a.py", "CTX301")
    assert not ignored("src/tests.py", "CTX211")
    assert ignored("any/where/conftest.py", "CTX301")
    assert ignored("other/a.py", "CTX401")
    assert not ignored("src/deep/a.py", "CTX401")


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        ("0.1.0", True),
        ("0.1", True),
        ("==0.1.0", True),
        (">=0.1,<1", True),
        (">=0.2", False),
        ("!=0.1", False),
        ("<0.1", False),
        (">0.0.9", True),
        ("<=0.1.0", True),
    ],
)
def test_required_version(required: str, expected: bool) -> None:
    assert version_allowed("0.1.0", required) is expected
