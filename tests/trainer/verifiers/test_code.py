"""Programs of responses, and the unit tests that judge them."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from trainer.verifiers import Judges
from trainer.verifiers.code import unit_tests

SECONDS, MEMORY_MB = 20.0, 256
SUM = "```python\ndef add(a, b):\n    return a + b\n```"
READS = "```python\na, b = map(int, input().split())\nprint(a + b)\n```"


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    made = Judges({"code": "code"}, code_seconds=SECONDS, code_memory_mb=MEMORY_MB)
    yield made
    made.close()


@pytest.mark.parametrize("status", [1, 97])
def test_no_exit_status_of_a_program_says_that_it_could_not_be_confined(judges, status):
    leaves = f"```python\nimport os\nos._exit({status})\n```"
    assert not judges.passed("code", [leaves], unit_tests(["assert True"])).any()


@pytest.mark.parametrize("program", ["import os; os._exit(0)", "raise SystemExit(0)", "import sys; sys.exit()"])
def test_a_program_that_leaves_before_its_tests_has_not_passed_them(judges, program):
    tests = unit_tests(["assert False"])
    assert not judges.passed("code", [f"```python\n{program}\n```"], tests).any()


def test_assertions_are_run_in_the_programs_own_names(judges):
    tests = unit_tests(["assert add(1, 2) == 3", "assert add(-1, 1) == 0"])
    wrong = SUM.replace("+", "-")
    assert judges.passed("code", [SUM, wrong, "no code at all", "```python\ndef add(\n```"], tests).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_what_is_printed_is_compared_line_by_line_for_every_input(judges):
    tests = unit_tests({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3", "7\n"]})
    only_the_first = "```python\nprint(3)\n```"
    exits = READS.replace("print(a + b)", "print(a + b); raise SystemExit(0)")
    fails = READS.replace("print(a + b)", "print(a + b); raise SystemExit(1)")
    assert judges.passed("code", [READS, only_the_first, exits, fails], tests).tolist() == [True, False, True, False]


def test_programs_that_time_out_or_die_are_counted():
    judges = Judges({"code": "code"}, code_seconds=1.5, code_memory_mb=MEMORY_MB)
    tests = unit_tests(["assert True"])
    hangs, dies = "```python\nwhile True: pass\n```", "```python\nimport ctypes; ctypes.string_at(0)\n```"
    assert not judges.passed("code", [hangs, dies], tests).any()
    assert judges.metrics() == {"verifier/judged": 2.0, "verifier/timeouts": 1.0, "verifier/crashes": 1.0}
    judges.close()


def test_the_cpu_time_of_programs_is_told_of_those_that_pass_fail_and_are_killed():
    judges = Judges({"code": "code"}, code_seconds=3.0, code_memory_mb=MEMORY_MB)
    busy = "import time\nwhile time.process_time() < 0.5: pass\n"
    given = [
        f"```python\n{busy}{more}\n```"
        for more in ("", "raise ValueError", "while True: pass", "import ctypes; ctypes.string_at(0)")
    ]
    before = used_by_children()
    assert judges.passed("code", given, unit_tests(["assert True"])).tolist() == [True, False, False, False]
    assert judges.cpu_seconds() == pytest.approx(used_by_children() - before, abs=1e-3)
    assert judges.cpu_seconds() > 3 * 0.5  # the one without end gets what a busy machine leaves it
    judges.close()


IGNORING = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from trainer.verifiers import Judges
judges = Judges({"code": "code"}, code_seconds=2.0, code_memory_mb=256)
given = ["```python\\na = 1\\n```", "```python\\nwhile True: pass\\n```"]
print(judges.passed("code", given, '{"asserts": ["assert a"]}').tolist(), judges.metrics()["verifier/timeouts"])
judges.close()
"""


@pytest.mark.slow
def test_programs_are_judged_too_where_the_kernel_keeps_no_record_of_ended_processes():
    ran = subprocess.run([sys.executable, "-c", IGNORING], check=True, capture_output=True, text=True)
    assert ran.stdout == "[True, False] 1.0\n"


def used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(
    ("given", "kind", "count"),
    [
        ("assert f(1) == 2\nassert f(2) == 3", "asserts", 1),
        (["assert f(1) == 2", "assert f(2) == 3"], "asserts", 2),
        (json.dumps(["assert f(1) == 2"]), "asserts", 1),
        ({"inputs": ["1"], "outputs": [2]}, "cases", 1),
        ([{"input": "1", "output": "2"}, {"input": "2", "output": "3"}], "cases", 2),
    ],
)
def test_tests_come_in_every_usual_form(given, kind, count):
    assert len(json.loads(unit_tests(given))[kind]) == count


@pytest.mark.parametrize("given", [[], {}, 3, [""], [{"input": "1"}], {"inputs": ["1"], "outputs": []}])
def test_what_is_no_test_is_refused(given):
    with pytest.raises(ValueError, match=r"tests|inputs"):
        unit_tests(given)


@pytest.mark.parametrize(
    "given",
    [
        {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]},
        [{"type": "function_call", "fn_name": "add", "input": "1", "output": "1"}],
        [{"input": "1\n2", "output": "3", "testtype": "functional", "metadata": {"func_name": "add"}}],
    ],
)
def test_tests_that_call_a_function_by_name_are_refused_and_not_taken_for_what_is_printed(given):
    with pytest.raises(ValueError, match="call a function by name; write them as texts of assertions"):
        unit_tests(given)


def test_a_list_is_neither_read_nor_printed():
    with pytest.raises(ValueError, match=r"a list as input or output, \['1', '2'\]; give text"):
        unit_tests({"inputs": [["1", "2"]], "outputs": ["3"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": [None], "outputs": ["3"]}, 'null as input or output; give text, ""'),
        ([{"input": "", "output": None}], 'null as input or output; give text, ""'),
        ({"inputs": ["a\ud800"], "outputs": ["3"]}, r"half a character, 'a\\ud800', which"),
        (["assert f() == '\udc00'"], "half a character, "),
    ],
)
def test_what_can_be_neither_read_nor_printed_is_refused_and_not_met_in_the_middle_of_a_run(given, message):
    with pytest.raises(ValueError, match=message):
        unit_tests(given)
