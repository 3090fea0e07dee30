"""Every benchmark that the docs name can be started."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
OURS = ("forecurve", "server", "worker", "trainer", "web", "tests")
_IMPORT_ALL = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"


def names_in(file: Path) -> set[str]:
    """What another file can import from this one."""
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            names |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return names


def is_there(module: str, name: str) -> bool:
    if (sibling := FOLDER / f"{module}.py").exists():
        return name in names_in(sibling)
    if module.partition(".")[0] not in OURS:
        return True
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_a_benchmark_finds_what_it_imports_of_ours(file: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    wanted = [(node.module or "", alias.name) for node in imports for alias in node.names]
    assert [one for one in wanted if not is_there(*one)] == []


@pytest.mark.slow
def test_benchmarks_find_what_they_import() -> None:
    pytest.importorskip("optuna")
    names = sorted(file.stem for file in FOLDER.glob("*.py"))

    found = subprocess.run([sys.executable, "-c", _IMPORT_ALL, *names], cwd=FOLDER, capture_output=True, text=True)

    assert found.returncode == 0, found.stderr
