"""Shared by all tests: torch in the state of a fresh process, profiles of hypothesis, `pytest --rule CODE`."""

from __future__ import annotations

import gc
import os
import random
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.linting import SHARED_BY_WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Hundreds of processes import ctxlint, and every worker the tests: without bytecode, each compiles them again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.set_threshold(50_000, 20, 50)  # thousands of tests and LibCST are alive; traversing them often takes long

# `HYPOTHESIS_PROFILE=long pytest tests/test_fuzz.py` tries a hundred times harder.
_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("default", max_examples=100, derandomize=True, **_COMMON)  # type: ignore[arg-type]
settings.register_profile("long", max_examples=10_000, **_COMMON)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_LONG = (
    "tests/habitats/",
    "tests/torch_api/",
    "tests/test_determinism.py",
    "tests/test_readme.py",
    "tests/test_scale.py",
)
"""Files with single tests that take many seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rule", metavar="CODE", help="only the tests of this rule: its fixture, page and messages")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With ``--rule``, collect two files and run them in this process: starting workers would take longer."""
    if config.getoption("rule"):
        config.option.numprocesses = 0
        config.args = [str(Path(__file__).parent / name) for name in ("test_rules.py", "test_messages.py")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests first, so that no worker waits for one at the end. With ``--rule``, drop the tests of other rules."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))
    code = config.getoption("rule")
    if code:
        chosen = [item for item in items if f"[{code.upper()}" in item.name]
        if not chosen:
            raise pytest.UsageError(f"no rule has the code {code}")
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A separate cache for the tests and the processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for name in ("CTXLINT_CACHE_DIR", "CTXLINT_CACHE_KEY"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _shared_findings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder that all workers of this session share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "findings"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SHARED_BY_WORKERS, str(folder))
        yield


@pytest.fixture
def torch_as_new() -> Iterator[None]:
    """Seeds, grad mode, default dtype and warnings as in a fresh process; restored after the test.

    So is the recursion limit, which inductor raises.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        random.seed(0)
        collecting, dtype, recursion = gc.isenabled(), torch.get_default_dtype(), sys.getrecursionlimit()
        gc.freeze()  # proofs collect garbage; without the modules and tests that are loaded, that takes no time
        try:
            with torch.enable_grad():
                yield
        finally:
            torch.set_default_dtype(dtype)
            sys.setrecursionlimit(recursion)
            gc.enable() if collecting else gc.disable()
            gc.unfreeze()
