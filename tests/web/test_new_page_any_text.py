"""Whatever is written into the form for new runs and sweeps, the page answers: with a plan, or with what is wrong."""

from __future__ import annotations

import time

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.reading import text_of

VALUES = st.one_of(
    st.sampled_from(
        [
            *("2001-99-99", "2024-01-01", "!!binary aGk=", "!!set {a, b}", "&a [*a]", "!!python/object:os.system x"),
            *("{a: 1}", "[[[1]]]", ".inf", "-.nan", "1e999", "9" * 5000, "[" * 3000, "~", "''", "?", "- a", "0o7"),
            *("1_000", "2024-01-01T00:00:00Z", "<<: {a: b}", "!<x> y", "\x00", "\ud7ff", "a: b: c", "@a", "`a`", "%a"),
        ]
    ),
    st.text(max_size=30),
)
FIELDS = st.one_of(
    st.sampled_from(["seed", "budget.compute", "task.kind", "algorithm", "task", "name", "model.path", "rewards"]),
    st.text(max_size=20),
)
LINES = st.lists(st.tuples(FIELDS, VALUES).map(" = ".join), max_size=3).map("\n".join)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["run", "leave_one_out", "one_factor", "grid"]),
    changes=LINES,
    factors=LINES,
    seeds=st.one_of(st.just("0"), st.text(max_size=12)),
    base=st.one_of(st.just("preset:scalerl"), st.text(max_size=12)),
)
def test_any_text_gets_a_plan_or_its_faults(
    site: TestClient, kind: str, changes: str, factors: str, seeds: str, base: str
) -> None:
    asked = {"kind": kind, "changes": changes, "factors": factors, "seeds": seeds, "base": base, "sent": "true"}
    answer = site.get("/new", params=asked)
    assert answer.status_code in (200, 422)
    assert ('id="faults"' in answer.text) == (answer.status_code == 422)


def test_a_text_that_would_be_gigabytes_is_refused_at_once(site: TestClient) -> None:
    nested = ", ".join(f"&{'abcdefghi'[at]} [{', '.join(['*' + 'abcdefghi'[at - 1]] * 9)}]" for at in range(1, 9))
    began = time.process_time()
    answer = site.get("/new", params={"kind": "run", "changes": f"task = [&a [1, 1], {nested}]", "sent": "true"})
    assert answer.status_code == 422
    assert "changes" in text_of(answer.text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 3000, "!!binary aGk=", "&a [*a]"])
def test_a_value_that_yaml_cannot_make_is_told_with_its_line(site: TestClient, value: str) -> None:
    answer = site.get("/new", params={"kind": "run", "changes": f"seed = {value}", "sent": "true"})
    assert answer.status_code == 422
    assert "cannot be read; write field = value" in text_of(answer.text)
