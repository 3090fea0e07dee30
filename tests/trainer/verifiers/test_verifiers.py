"""Verifiers of text: what counts as the answer, equal mathematics, and functions that hang, crash or eat memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

import pytest

from trainer.errors import ConfigurationError
from trainer.verifiers import Judges
from trainer.verifiers.exact import check as exact
from trainer.verifiers.text import final_part, last_boxed, last_code_block

OWN = """
import os, time

def check(response, answer):
    if response == "hang":
        time.sleep(3600)
    if response == "die":
        os._exit(3)
    if response == "eat":
        return len(bytearray(1 << 40)) > 0
    if response == "raise":
        raise RuntimeError("as asked")
    print("this must not be taken for a verdict")
    return response == answer

not_callable = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch) -> str:
    """A module of the user's, somewhere on the path."""
    (tmp_path / "users_own.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return "users_own:check"


@pytest.fixture(scope="module")
def mathematics() -> Iterator[Judges]:
    judges = Judges({"math": "math"})
    yield judges
    judges.close()


@pytest.mark.parametrize(
    ("text", "boxed"),
    [
        (r"\boxed{1} and \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {x}", "x"),
        (r"\boxed{1} then \boxed{\frac{", "1"),
        ("no box", None),
    ],
)
def test_the_last_complete_box_counts_with_the_braces_in_it(text, boxed):
    assert last_boxed(text) == boxed


def test_only_what_follows_the_thinking_counts():
    assert final_part("<think>\\boxed{1}</think> so 2") == " so 2"
    assert final_part("so 2") == "so 2"


def test_the_last_code_block_counts_whatever_it_is_fenced_with():
    assert last_code_block("```python\na = 1\n```\ntext\n```\nb = 2\n```") == "b = 2\n"
    assert last_code_block("```PY\na\n```") == "a\n"
    assert last_code_block("a = 1") is None


PROGRAM = "```python\nprint(1)\n```"


@pytest.mark.parametrize(
    "text",
    [
        f"Install:\n```bash\npip install x\n```\nThen run\n{PROGRAM}\n",
        f"Input\n```json\n{{}}\n```\nSolution:\n\n{PROGRAM}",
        f"{PROGRAM}\nOutput:\n```text\n1\n```\nDone.",
        "```cpp\nint x;\n```\nand\n```\nprint(1)\n```",
        f"```python\nx\n```\n{PROGRAM}",
        f"{PROGRAM}\nand then\n```python\ncut off",
        "Solution: ```python\nprint(1)\n```",
        f"fenced with ```\n{PROGRAM}",
        "````python\nprint(1)\n````",
    ],
)
def test_prose_and_other_languages_between_fences_are_not_the_program(text):
    assert last_code_block(text) == "print(1)\n"


@pytest.mark.parametrize(
    "label", ["python3.11", "Python3", "py3", 'python title="a"', "{.python}", " python", "python:a.py"]
)
def test_a_block_is_python_however_its_label_says_so(label):
    assert last_code_block(f"```{label}\nprint(1)\n```") == "print(1)\n"


@pytest.mark.parametrize("label", ["pythonic", "pycon", "python2", "c++", "text"])
def test_a_block_of_another_language_is_no_program(label):
    assert last_code_block(f"```{label}\nprint(1)\n```") is None


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("```python\r\nprint(1)\r\n```\r\n", "print(1)\r\n"),
        ("1. So:\n   ```python\n   if a:\n       b()\n   ```\n", "if a:\n    b()\n"),
        ("```python\nprint(1)```", "print(1)"),
        ('```python\nd = """\n    ```\n    1\n    ```\n"""\n```', 'd = """\n    ```\n    1\n    ```\n"""\n'),
        ("```python\na = 1  # ```b```\n```", "a = 1  # ```b```\n"),
    ],
)
def test_a_block_is_all_that_stands_between_its_own_fences(text, block):
    assert last_code_block(text) == block


def test_a_line_made_to_be_slow_is_read_in_no_time():
    began = time.process_time()
    assert last_code_block("```" + " " * 300_000 + "`") is None
    assert time.process_time() - began < 5  # quadratic it takes minutes


@pytest.mark.parametrize(
    ("response", "passed"),
    [
        ("Paris", True),
        ("It is a town.\n  Paris  \n", True),
        (r"so \boxed{Paris}", True),
        (r"Paris, or \boxed{Rome}", False),
        ("Paris is it", False),
        ("paris", False),
        ("", False),
    ],
)
def test_an_exact_answer_is_the_box_or_the_last_line(response, passed):
    assert exact(response, "Paris") is passed


@pytest.mark.parametrize(
    ("response", "answer", "passed"),
    [
        (r"\boxed{\frac12}", "0.5", True),
        (r"\boxed{1+x^2}", "x^2+1", True),
        (r"so it is 42.", "42", True),
        (r"first 41, then 42", "42", True),
        (r"\boxed{41} although 42", "42", False),
        (r"<think>\boxed{42}</think> I give up", "42", False),
        (r"\boxed{\sqrt{8}}", r"2\sqrt{2}", True),
        (r"\boxed{(1, 2)}", "(1,2)", True),
        ("nothing here", "42", False),
        ("", "42", False),
    ],
)
def test_mathematics_is_compared_by_what_it_means(mathematics, response, answer, passed):
    assert mathematics.passed("math", [response], answer).tolist() == [passed]


def test_a_formula_without_end_costs_one_response_and_is_counted():
    judges = Judges({"math": "math"}, function_seconds=3.0)
    judges.start()
    tower = r"\boxed{" + "9^{" * 6 + "9" + "}" * 6 + "}"
    try:
        assert judges.passed("math", [tower, r"\boxed{42}"], "42").tolist() == [False, True]
        assert judges.passed("math", [r"\boxed{42}"], "42").tolist() == [True]
        metrics = judges.metrics()
        assert metrics["verifier/timeouts"] + metrics["verifier/crashes"] == 1
    finally:
        judges.close()


def test_a_users_own_function_may_hang_die_raise_or_eat_memory_and_is_counted(own):
    judges = Judges({"mine": own}, function_seconds=0.5)
    try:
        judges.start()
        given = ["yes", "hang", "yes", "die", "raise", "eat", "no", "yes"]
        judges.passed("mine", ["yes"] * 16, "yes")  # every worker has started: only the function's time is measured
        assert judges.passed("mine", given, "yes").tolist() == [word == "yes" for word in given]
        metrics = judges.metrics()
        assert metrics["verifier/judged"] == 24
        assert metrics["verifier/timeouts"] == 1
        assert metrics["verifier/crashes"] == 3
    finally:
        judges.close()


BUSY = """
import os, subprocess, sys, time

def check(response, answer):
    if response == "through another":
        subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.3: pass"], check=True)
    end = time.process_time() + 0.3
    while time.process_time() < end or response == "hang": pass
    return True if response != "die" else os._exit(1)
"""


@pytest.mark.slow  # 5 s; that of programs is in test_code.py
def test_the_cpu_time_of_workers_is_told_after_each_verdict_and_also_of_those_that_hang_or_die(own, tmp_path):
    (tmp_path / "busy.py").write_text(BUSY)
    judges = Judges({"mine": "busy:check", "text": "exact"}, function_seconds=3.0)
    before = used_by_children()
    try:
        judges.start()
        for response, least in (("yes", 0.3), ("through another", 0.6), ("hang", 0.3), ("die", 0.3)):
            told = judges.cpu_seconds()
            judges.passed("mine", [response], "")
            assert judges.cpu_seconds() - told >= least, response
        told = judges.cpu_seconds()
        judges.passed("text", ["Paris"], "Paris")
        assert judges.cpu_seconds() == told
    finally:
        judges.close()
    assert judges.cpu_seconds() == pytest.approx(used_by_children() - before, abs=1e-3)


def used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


DYING = """
import os, threading

def check(response, answer):
    if response == "die soon":
        threading.Timer(0.02, os._exit, [1]).start()
    return response == answer
"""


def test_a_worker_that_dies_after_its_verdict_costs_no_other_response(own, tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    judges = Judges({"mine": "dying:check"})
    try:
        workers = judges._verifiers["dying:check"]._workers
        judges.passed("mine", ["die soon"] * len(workers), "yes")
        for worker in workers:
            if worker._process is not None:
                worker._process.wait(30)
        assert judges.passed("mine", ["yes"] * len(workers), "yes").all()
        assert judges.metrics()["verifier/crashes"] == 0
    finally:
        judges.close()


RETURNING = """
import numpy as np

GIVEN = {"true": True, "one": 1, "numpy": np.True_, "false": False, "zero": 0.0, "none": None,
         "reward": -1.0, "part": 0.3, "nan": float("nan"), "word": "wrong"}

def check(response, answer):
    return GIVEN[response]
"""


@pytest.fixture
def returning(own, tmp_path) -> Iterator[Judges]:
    """A verifier that returns what the response asks for."""
    (tmp_path / "returning.py").write_text(RETURNING)
    judges = Judges({"mine": "returning:check"})
    yield judges
    judges.close()


def test_a_verifier_says_true_or_false_in_any_of_the_usual_ways(returning):
    given = ["true", "one", "numpy", "false", "zero", "none"]
    assert returning.passed("mine", given, "").tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize(("word", "said"), [("reward", "-1.0"), ("part", "0.3"), ("nan", "nan"), ("word", "'wrong'")])
def test_a_score_or_a_text_is_no_verdict_and_is_refused_by_name(returning, word, said):
    with pytest.raises(ConfigurationError, match=rf"'returning:check', which returned {said} for a response; return"):
        returning.passed("mine", ["true", word], "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here:check", "No module named 'no_such_module_here'"),
        ("users_own:chek", "has no attribute 'chek'"),
        ("users_own:not_callable", "is a int, not a function"),
    ],
)
def test_a_verifier_that_does_not_exist_is_refused_by_name_before_any_response(own, name, message):
    judges = Judges({"mine": name})
    with pytest.raises(ConfigurationError, match=message):
        judges.start()
    judges.close()


def registering(name: str, body: str = "return response == answer") -> str:
    head = "from forecurve.verifiers import register"
    return f"{head}\n\n@register({name!r})\ndef {name.replace('-', '_')}(response, answer):\n    {body}\n"


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes modules of the user's, by name, where only this test finds them."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**texts: str) -> tuple[str, ...]:
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return tuple(texts)

    return write


def test_registered_verifiers_judge_beside_built_in_ones_each_for_its_task(modules):
    mine = modules(users_riddles=registering("riddle"), users_puzzles=registering("no-luck", "return False"))
    judges = Judges({"a": "riddle", "b": "no-luck", "c": "exact"}, modules=mine)
    try:
        judges.start()
        verdicts = {task: judges.passed(task, ["Paris", "so\nParis"], "Paris").tolist() for task in "abc"}
    finally:
        judges.close()
    assert verdicts == {"a": [True, False], "b": [False, False], "c": [True, True]}
    assert "users_riddles" not in sys.modules  # it is imported where it judges, and nowhere else


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"one": registering("ridle")}, r"known are math, code, exact, ridle\. Put `@forecurve.verifiers.register"),
        ({"one": "import no_such_module_here"}, "names 'one', and its import fails: ModuleNotFoundError: No module"),
        ({"one": "raise SystemExit(3)"}, "names 'one', and its import fails: SystemExit: 3"),
        ({"one": registering("riddle"), "two": "1 / 0"}, "names 'two', and its import fails: ZeroDivisionError"),
        (
            {"one": registering("riddle"), "two": registering("riddle")},
            r"names 'two', .*two verifiers are registered as 'riddle': one\.riddle and two\.riddle",
        ),
        ({"one": registering("math")}, "'math', which comes with the trainer"),
        ({"one": "import os; os._exit(0)"}, "'riddle', but the process that imports it ended"),
    ],
)
def test_a_registered_verifier_that_is_not_there_is_refused_with_the_way_out(modules, texts, message):
    judges = Judges({"mine": "riddle"}, modules=modules(**texts))
    with pytest.raises(ConfigurationError, match=message):
        judges.start()
    judges.close()
