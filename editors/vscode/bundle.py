"""Put ctxlint and what it needs into the extension, for one platform of VS Code.

``python bundle.py linux-x64 && npm run package -- --target linux-x64 --out ctxlint-linux-x64.vsix``. It needs uv.
Everything is pure Python except for LibCST's parser, of which each Python has its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PLATFORMS = {
    "linux-x64": "x86_64-manylinux_2_28",
    "linux-arm64": "aarch64-manylinux_2_28",
    "darwin-arm64": "aarch64-apple-darwin",
    "win32-x64": "x86_64-pc-windows-msvc",
}
"""Names of VS Code and of uv. On other platforms LibCST has no wheels for some Python, and nothing is bundled."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LEFT_OUT = {"pyyaml", "pyyaml-ft"}
"""Only LibCST's own command line reads YAML."""

NOT_COPIED = ("tests", "__pycache__", ".lock", "bin", "direct_url.json", "uv_*.json")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def uv(*arguments: str) -> str:
    """What uv prints; CalledProcessError if it fails."""
    return subprocess.run(["uv", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def requirements() -> list[str]:
    """One release of each package, for all Pythons, as lines with markers."""
    lowest = ("--universal", "--fork-strategy", "fewest", "--python-version", PYTHONS[0])
    compiled = uv(
        "pip",
        "compile",
        "--quiet",
        "--no-annotate",
        "--no-header",
        "--extra",
        "lsp",
        *lowest,
        str(ROOT / "pyproject.toml"),
    )
    return [line for line in compiled.splitlines() if line.partition("==")[0] not in LEFT_OUT]


def bundle(platform: str) -> Path:
    """Fill ``bundled/libs`` for a platform of VS Code; the folder."""
    libs = HERE / "bundled" / "libs"
    shutil.rmtree(libs, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed = folder / "requirements.txt"
        listed.write_text("\n".join([*requirements(), f"ctxlint @ {ROOT.as_uri()}"]), encoding="utf-8")
        for python in PYTHONS:
            target = folder / python
            system = ("--python-platform", PLATFORMS[platform], "--python-version", python)
            only_wheels = ("--only-binary", ":all:", "--no-binary", "ctxlint", "--refresh-package", "ctxlint")
            uv(
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(target),
                *system,
                *only_wheels,
                "-r",
                str(listed),
            )
            shutil.copytree(target, libs, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return libs


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PLATFORMS:
        sys.exit(f"usage: python bundle.py {{{','.join(PLATFORMS)}}}")
    print(bundle(sys.argv[1]))
