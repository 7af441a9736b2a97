"""Which releases of torch a range contains, and which ones a project supports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxlint import lint_paths
from ctxlint.config.configuration import Configuration
from ctxlint.config.torch_versions import TorchVersions, read_target
from ctxlint.run.in_project import forget_other_files

_RELEASES = [(1, minor) for minor in range(14)] + [(2, minor) for minor in range(20)] + [(3, 0)]


def _ends(*specifiers: str) -> tuple[str, str]:
    """The oldest and the newest release in a range; ``on`` if it has no upper end."""
    versions = TorchVersions(specifiers)
    oldest = max((each for each in _RELEASES if not versions.fall_below(*each)), default=(0, 0))
    newest = max((each for each in _RELEASES if versions.reach(*each)), default=(0, 0))
    return "{}.{}".format(*oldest), "on" if newest == (3, 0) else "{}.{}".format(*newest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.4", ("2.4", "on")),
        ("2.4.1", ("2.4", "on")),
        ("2", ("2.0", "on")),
        (">=2.4", ("2.4", "on")),
        (">= 2.4.0", ("2.4", "on")),
        (">=1.13", ("1.13", "on")),
        (">=2.1,<2.7", ("2.1", "2.6")),
        (">=2.1,<=2.7", ("2.1", "2.7")),
        (">=2.1, <2.7.1", ("2.1", "2.7")),
        (">=2.1,<3", ("2.1", "2.19")),
        (">2.1", ("2.1", "on")),
        (">2.1,<2.2.1", ("2.1", "2.2")),
        ("==2.1.0", ("2.1", "2.1")),
        ("==2.1.0+cu118", ("2.1", "2.1")),
        ("===2.1.0", ("2.1", "2.1")),
        ("==2.8.0.dev20250601", ("2.8", "2.8")),
        ("==2.*", ("2.0", "2.19")),
        ("==2.1.*", ("2.1", "2.1")),
        ("~=2.1.0", ("2.1", "2.1")),
        ("~=2.1", ("2.1", "2.19")),
        (">=2.1,!=2.1.*", ("2.2", "on")),
        (">=2.99", ("2.19", "on")),
        # the oldest is unknown
        ("<2.7", ("2.4", "2.6")),
        ("!=2.5.0", ("2.4", "on")),
        ("<2.3", ("0.0", "2.2")),
    ],
)
def test_a_range(text: str, expected: tuple[str, str]) -> None:
    assert _ends(*read_target(text).specifiers) == expected


@pytest.mark.parametrize("text", ["", "new", "2.4+", ">2.x", "2.1,2.2", "=>2", ">=2.*"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="expected a version such as") as caught:
        read_target(text)
    assert str(caught.value).endswith(f'got "{text}"')


@pytest.mark.parametrize("text", [">=99", ">=2.7,<2.1", "24", "==99.1", ">24,<25", "~=24.1", ">=2024.1"])
def test_what_no_version_meets(text: str) -> None:
    with pytest.raises(ValueError, match="which matches no version") as caught:
        read_target(text)
    assert f'got "{text}"' in str(caught.value)


def test_several_ranges_and_none() -> None:
    assert _ends() == ("2.4", "on")
    assert _ends(">=2.6,<2.8", "==2.1.2") == ("2.1", "2.7")
    assert _ends("what", "==2.1.2") == ("2.1", "2.1")
    assert _ends("what") == ("2.4", "on")
    assert str(TorchVersions()) == ">=2.4"
    assert str(TorchVersions((">=2.6,<2.8", "==2.1.2"))) == ">=2.6,<2.8 or ==2.1.2"


def test_common_ranges_need_no_package() -> None:
    program = """
import sys
from ctxlint.config.settings import Settings
assert Settings().torch.reach(2, 13)
assert Settings(target_torch="2.1").torch.fall_below(2, 4)
assert Settings(project_torch=(">=2.1",)).torch.fall_below(2, 4)
assert not [name for name in sys.modules if name.startswith("packaging")]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ---------------------------------------------------------------------------------------------------------------------
# What the project says


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_other_files()
    monkeypatch.chdir(tmp_path)


def _required(**files: str) -> tuple[str, ...]:
    """Which torch a project with these files requires; ``__`` is the dot in their names."""
    for name, text in files.items():
        Path(name.replace("__", ".")).write_text(text, encoding="utf-8")
    return Configuration().settings_for_file("package/module.py").project_torch


_POETRY = "[tool.poetry.dependencies]\npython = '^3.9'\ntorch = "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[project]\ndependencies = ['numpy', 'torch>=2.1']\n", (">=2.1",)),
        ("[project]\ndependencies = ['torch[opt] >=2.1, <2.7 ; python_version > \"3.9\"']\n", (">=2.1,<2.7",)),
        ("[project]\ndependencies = ['Torch (>=2.1)']\n", (">=2.1",)),
        ("[project]\ndependencies = ['torch==2.1.0+cu118']\n", ("==2.1.0+cu118",)),
        (
            "[project]\ndependencies = [\"torch>=2.6; sys_platform == 'linux'\", \"torch==2.2; sys_platform != 'linux'\"]\n",
            (">=2.6", "==2.2"),
        ),
        ("[project]\ndependencies = ['torch', 'torchvision>=0.15', 'torch-geometric>=2', 'pytorch-lightning>2']\n", ()),
        ("[project]\ndependencies = ['torch @ https://example.org/torch-2.1.whl']\n", ()),
        (
            "[project.optional-dependencies]\na = ['numpy']\nb = ['torch>=2.2']\nc = ['torch>=2.2', 'torch<3']\n",
            (">=2.2", "<3"),
        ),
        (
            "[project]\ndependencies = ['torch>=2.1']\n[project.optional-dependencies]\ntest = ['torch==2.9']\n",
            (">=2.1",),
        ),
        ("[project]\ndependencies = ['torch']\n[project.optional-dependencies]\ntest = ['torch==2.9']\n", ("==2.9",)),
        (f"{_POETRY}'^2.1'", (">=2.1,<3",)),
        (f"{_POETRY}'^0.4.1'", (">=0.4.1,<0.5",)),
        (f"{_POETRY}'~2.1.1'", (">=2.1.1,<2.2",)),
        (f"{_POETRY}'~2'", (">=2,<3",)),
        (f"{_POETRY}'2.1.0'", ("==2.1.0",)),
        (f"{_POETRY}'2.1.*'", ("==2.1.*",)),
        (f"{_POETRY}'>=2.1,<2.4 || ^2.5'", (">=2.1,<2.4", ">=2.5,<3")),
        (f"{_POETRY}'*'", ()),
        (f"{_POETRY}{{ version = '~2.1', optional = true }}", (">=2.1,<2.2",)),
        (f"{_POETRY}[{{ version = '2.1.0', platform = 'linux' }}, {{ git = 'https://example.org' }}]", ("==2.1.0",)),
        ("[project]\ndependencies = 'torch>=2.1'\n", ()),
        ("project = 'torch'\n[tool]\npoetry = 3\n", ()),
        ("[project\ndependencies = ['torch>=2.1']\n", ()),
    ],
)
def test_pyproject(text: str, expected: tuple[str, ...]) -> None:
    assert _required(pyproject__toml=text) == expected


def test_setup_cfg_and_requirement_files() -> None:
    requirements = "# torch>=1.0\n-r other.txt\nnumpy\ntorch>=2.2,<2.9  # as tested\n"
    assert _required(setup__py="", requirements__txt=requirements) == (">=2.2,<2.9",)
    forget_other_files()
    pinned = "torch==2.0.1 \\\n    --hash=sha256:0\ntorch == 2.1.0 --hash=sha256:0\n"
    assert _required(requirements_cpu__txt=pinned) == (">=2.2,<2.9", "==2.0.1", "==2.1.0")
    forget_other_files()
    assert _required(setup__cfg="[options]\ninstall_requires =\n    numpy\n    torch>=2.3\n") == (">=2.3",)
    forget_other_files()
    assert _required(pyproject__toml="[project]\ndependencies = ['torch']\n") == (">=2.3",)
    forget_other_files()
    assert _required(setup__cfg="[options\ntorch", pyproject__toml="") == (">=2.2,<2.9", "==2.0.1", "==2.1.0")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("pytorch=2.1", ("==2.1.*",)),
        ("pytorch=2.1.0", ("==2.1.0",)),
        ("pytorch=2.1.0=py3.9_cuda11.8_0", ("==2.1.0",)),
        ("pytorch==2.1", ("==2.1",)),
        ("pytorch 2.1.*", ("==2.1.*",)),
        ("pytorch=2.1.*", ("==2.1.*",)),
        ("pytorch >=2.1,<2.5", (">=2.1,<2.5",)),
        ("pytorch>=2.1,<2.5=*cuda*", (">=2.1,<2.5",)),
        ("pytorch=2.1|=2.3", ("==2.1.*", "==2.3.*")),
        ("'pytorch::pytorch>=2.1'", (">=2.1",)),
        ("conda-forge::pytorch-gpu>=2.1  # with CUDA", (">=2.1",)),
        ("pytorch", ()),
        ("pytorch-cuda=11.8", ()),
        ("pytorch-lightning>=2", ()),
        ("pip:\n    - torch==2.1.2\n    - torchvision==0.16", ("==2.1.2",)),
    ],
)
def test_conda(item: str, expected: tuple[str, ...]) -> None:
    text = f"name: x\nchannels:\n  - pytorch\ndependencies:\n  - python=3.10\n  - {item}\n"
    assert _required(setup__py="", environment__yml=text) == expected


def test_the_files_of_environments() -> None:
    """Any of their versions may be installed, so the oldest counts."""
    Path(".git").mkdir()
    Path("requirements").mkdir()
    Path("requirements/test.txt").write_text("torch==2.5.1\n", encoding="utf-8")
    files = {"conda_dev__yaml": "dependencies:\n- pytorch=2.2\n", "constraints_old__txt": "torch==2.0.1\n"}
    assert _required(**files) == ("==2.2.*", "==2.0.1", "==2.5.1")
    assert Configuration().settings_for_file("m.py").torch.fall_below(2, 1)


def test_setup_py() -> None:
    text = "from setuptools import setup\nraise SystemExit\nsetup(install_requires=['torch>=2.1,<2.3'])\n"
    assert _required(setup__py=text, requirements__txt="torch==2.9\n") == (">=2.1,<2.3",)
    forget_other_files()
    extras = "from setuptools import setup\nsetup(extras_require={'a': ['torch>=2.2']})\n"
    assert _required(setup__py=extras, setup__cfg="[options.extras_require]\nb =\n    torch>=2.3\n") == (
        ">=2.3",
        ">=2.2",
    )
    forget_other_files()
    both = _required(setup__py=text, pyproject__toml="[project]\ndependencies = ['torch>=2.4']\n")
    assert both == (">=2.4", ">=2.1,<2.3")


def test_the_nearest_project_is_asked_and_no_other() -> None:
    for folder, text in {".": "torch>=2.1", "a/b": "torch>=2.5", "a/c": "numpy"}.items():
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "pyproject.toml").write_text(f"[project]\ndependencies = ['{text}']\n", encoding="utf-8")
    Path("a/requirements.txt").write_text("torch>=2.9", encoding="utf-8")
    configuration = Configuration()
    files = ("m.py", "a/m.py", "a/b/m.py", "a/b/deep/m.py", "a/c/m.py")
    asked = [configuration.settings_for_file(file).project_torch for file in files]
    assert asked == [(">=2.1",), (">=2.1",), (">=2.5",), (">=2.5",), ()]


def test_what_is_set_comes_before_what_the_project_says() -> None:
    text = "[project]\ndependencies = ['torch>=2.1']\n"
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    assert Configuration().settings_for_file("m.py").torch == TorchVersions((">=2.1",))
    assert Configuration(isolated=True).settings_for_file("m.py").torch == TorchVersions()
    assert Configuration({"target_torch": "2.6"}).settings_for_file("m.py").torch == TorchVersions((">=2.6",))
    Path("pyproject.toml").write_text(f"{text}[tool.ctxlint]\ntarget-torch = '>=2.3,<2.5'\n", encoding="utf-8")
    assert Configuration().settings_for_file("m.py").torch == TorchVersions((">=2.3,<2.5",))


_BY_KEYWORD = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


y = Scale.apply(torch.ones(2), factor=2.0)
"""


def test_the_files_of_each_project_are_judged_by_its_own_requirement() -> None:
    for folder, requirement in {"old": "torch>=2.1,<2.13", "new": "torch>=2.13"}.items():
        Path(folder).mkdir()
        Path(folder, "pyproject.toml").write_text(f"[project]\ndependencies = ['{requirement}']\n", encoding="utf-8")
        Path(folder, "module.py").write_text(_BY_KEYWORD, encoding="utf-8")
    assert [(each.path, each.code) for each in lint_paths(["."])] == [(os.path.join("old", "module.py"), "CTX702")]
    said = subprocess.run(
        [sys.executable, "-m", "ctxlint", "-q", "-", "--stdin-filename=new/module.py"],
        input=_BY_KEYWORD,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert said.stdout == ""


_DEPRECATED = """
import torch
from torch.cuda.amp import custom_bwd, custom_fwd


class Double(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @custom_bwd
    def backward(ctx, grad_output):
        return grad_output * 2
"""


def test_what_a_project_will_meet_later_is_reported_and_not_fixed() -> None:
    """torch 2.1 has no ``torch.amp.custom_fwd``; a project that stays on it sets ``target-torch``."""
    Path("setup.py").write_text("setup(install_requires=['torch>=2.1,<2.3'])\n", encoding="utf-8")
    Path("module.py").write_text(_DEPRECATED, encoding="utf-8")
    found = lint_paths(["module.py"])
    assert [(each.code, each.fix) for each in found] == [("CTX602", None)] * 2
    assert "that and newer releases warn when `Double` is defined" in found[0].message
    Path("ctxlint.toml").write_text("target-torch = '>=2.1,<2.3'\n", encoding="utf-8")
    assert lint_paths(["module.py"]) == []


@pytest.mark.parametrize("arguments", [["--version"], ["."]])
def test_a_run_without_candidates_looks_at_no_versions(arguments: list[str]) -> None:
    Path("pyproject.toml").write_text("[project]\ndependencies = ['torch>=2.1,<2.7']\n", encoding="utf-8")
    Path("module.py").write_text("import torch\n", encoding="utf-8")
    program = """
import sys
from ctxlint.cli import main
try:
    assert main(sys.argv[1:]) == 0
except SystemExit as end:
    assert not end.code
read = [name for name in sys.modules if name.startswith(("packaging", "tomli", "ctxlint.torch_"))]
assert not read, read
"""
    subprocess.run([sys.executable, "-c", program, *arguments], check=True)
