"""The registry of verifiers: what may be registered under which name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from forecurve import verifiers
from forecurve.verifiers import VerifierError, register, registered


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is registered, and what a test registers is gone with it."""
    monkeypatch.setattr(verifiers, "_registered", {})


def right(response: str, answer: str) -> bool:
    return response == answer


def test_a_function_is_found_by_its_name_and_stays_itself() -> None:
    assert registered() == {}
    assert register("riddle.v2")(right) is right
    assert registered() == {"riddle.v2": right}


def test_what_is_given_out_is_a_copy() -> None:
    registered()["mine"] = right
    assert registered() == {}


def test_a_name_is_given_once_and_the_error_names_both_functions() -> None:
    register("riddle")(right)
    with pytest.raises(VerifierError, match=rf"'riddle': {__name__}\.right and .*<lambda>; rename one"):
        register("riddle")(lambda response, answer: True)
    assert registered() == {"riddle": right}


def test_a_module_may_be_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "from forecurve.verifiers import register\n\n@register('riddle')\ndef check(response, answer):\n    return {}\n"
    )
    file = tmp_path / "loaded_twice.py"
    file.write_text(text.format("1"))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("loaded_twice")
    file.write_text(text.format("'two'"))
    importlib.reload(module)
    assert registered()["riddle"]("", "") == "two"
    del sys.modules["loaded_twice"]


@pytest.mark.parametrize("name", ["math", "code", "exact"])
def test_names_that_come_with_the_trainer_are_taken(name: str) -> None:
    with pytest.raises(VerifierError, match=f"'{name}', which comes with the trainer"):
        register(name)


@pytest.mark.parametrize("name", ["", "my:own", "-own", "two words", "own\n"])
def test_a_name_that_no_recipe_could_hold_is_refused(name: str) -> None:
    with pytest.raises(VerifierError, match="use letters, digits"):
        register(name)


@pytest.mark.parametrize("function", [lambda response: True, lambda response, answer, more: True, lambda *, answer: 1])
def test_a_function_that_does_not_take_a_response_and_an_answer_is_refused(function) -> None:
    with pytest.raises(VerifierError, match=r"must take \(response, answer\)"):
        register("riddle")(function)


def test_anything_that_can_be_called_so_is_taken() -> None:
    class Check:
        def __call__(self, response: str, answer: str, strict: bool = True) -> bool:
            return strict

    register("object")(Check())
    register("builtin")(max)
    assert sorted(registered()) == ["builtin", "object"]
