"""Programs checked by unit tests in a sandbox (ScaleRL A.3): assertions, or what is printed for what is read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainer.errors import ConfigurationError

from . import sandbox
from .text import final_part, last_code_block
from .verdict import Verdict

START_SECONDS = 30.0


class CodeVerifier:
    """Runs the last code block of a response against all its tests; see `Verifier`.

    Args:
        seconds: wall-clock limit of all tests of one response together.
        memory_mb: address space of the program.
        workers: programs run at a time.
    """

    def __init__(self, seconds: float, memory_mb: int, workers: int):
        self._seconds, self._memory_mb = seconds, memory_mb
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="program")
        self._spent, self._spending = 0.0, threading.Lock()

    def start(self) -> None:
        """See `Verifier`. Runs an empty program."""
        if not self._run("", START_SECONDS).well:
            raise ConfigurationError(
                f"task.code_memory_mb is {self._memory_mb}, and an empty program does not run in that; raise it"
            )

    def judge(self, responses: Sequence[str], answer: str) -> Iterable[Verdict]:
        """See `Verifier`. `answer` is what `unit_tests` made."""
        tests = json.loads(answer)
        return self._threads.map(lambda response: self._judge(response, tests), responses)

    def cpu_seconds(self) -> float:
        """See `Verifier`."""
        return self._spent

    def close(self) -> None:
        """See `Verifier`. Programs that still run end at their time limit."""
        self._threads.shutdown(cancel_futures=True)

    def _judge(self, response: str, tests: dict[str, Any]) -> Verdict:
        program = last_code_block(final_part(response))
        if program is None:
            return Verdict.FAILED
        if "asserts" in tests:
            ran = self._run(program, self._seconds, tests=tests["asserts"], name="program")
            return _verdict(ran, ran.well)
        return self._judge_cases(program, tests["cases"])

    def _judge_cases(self, program: str, cases: Sequence[tuple[str, str]]) -> Verdict:
        deadline = time.monotonic() + self._seconds
        for given, expected in cases:
            left = deadline - time.monotonic()
            if left <= 0:
                return Verdict.TIMEOUT
            ran = self._run(program, left, stdin=given)
            verdict = _verdict(ran, ran.well and lines(ran.output) == lines(expected))
            if verdict is not Verdict.PASSED:
                return verdict
        return Verdict.PASSED

    def _run(self, program: str, seconds: float, **given: Any) -> sandbox.Ran:
        ran = sandbox.run(program, seconds, self._memory_mb, **given)
        with self._spending:
            self._spent += ran.cpu_seconds
        return ran


def _verdict(ran: sandbox.Ran, passed: bool) -> Verdict:
    if ran.timed_out:
        return Verdict.TIMEOUT
    if ran.killed:
        return Verdict.CRASH
    return Verdict.PASSED if passed else Verdict.FAILED


def lines(text: str) -> list[str]:
    """Lines without white space at their ends, nor empty ones at the end."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def unit_tests(tests: Any) -> str:
    """The tests of a row in the one form that `judge` reads.

    Args:
        tests: Python text of assertions, or a list of such texts; or `{"inputs": [...], "outputs": [...]}`, or a list
            of `{"input": ..., "output": ...}`: what is read from standard input and what must be printed. Any of
            these as JSON text too.

    Raises:
        ValueError: it is none of these, or there is no test in it; or a test calls a function by name, which nobody
            would do here: every right program would fail it.
    """
    if isinstance(tests, str):
        tests = _from_json(tests)
    if isinstance(tests, str):
        tests = [tests]
    _refuse_calls(tests)
    if isinstance(tests, dict) and isinstance(tests.get("inputs"), list) and isinstance(tests.get("outputs"), list):
        if len(tests["inputs"]) != len(tests["outputs"]):
            raise ValueError(f"{len(tests['inputs'])} inputs but {len(tests['outputs'])} outputs")
        tests = [{"input": i, "output": o} for i, o in zip(tests["inputs"], tests["outputs"], strict=True)]
    if not isinstance(tests, list) or not tests:
        raise ValueError("no tests: give assertions, or inputs and outputs")
    if all(isinstance(test, str) and test.strip() for test in tests):
        return json.dumps({"asserts": [_text(test) for test in tests]})
    if all(isinstance(test, dict) and {"input", "output"} <= test.keys() for test in tests):
        return json.dumps({"cases": [[_text(test["input"]), _text(test["output"])] for test in tests]})
    raise ValueError("tests are neither texts of assertions nor pairs of input and output")


def _refuse_calls(tests: Any) -> None:
    """Tests of a function, as TACO and LiveCodeBench have them beside those of whole programs."""
    for test in tests if isinstance(tests, list) else [tests]:
        if not isinstance(test, dict):
            continue
        kinds = {str(test.get(key)) for key in ("type", "testtype")}
        if test.get("fn_name") or kinds & {"function_call", "functional"}:
            raise ValueError("tests call a function by name; write them as texts of assertions")


def _text(value: Any) -> str:
    """A test, or what is read or printed. A list could be lines or arguments: whoever made the row knows."""
    if isinstance(value, list | dict):
        raise ValueError(f"tests have a {type(value).__name__} as input or output, {value!r:.60}; give text")
    if value is None:
        raise ValueError('tests have null as input or output; give text, "" where nothing is read or printed')
    text = str(value)
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError(f"tests have half a character, {text!a:.60}, which no program can read or print")
    return text


def _from_json(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict | list) else text
