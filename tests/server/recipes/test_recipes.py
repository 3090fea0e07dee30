"""Recipes over HTTP: stored once, and refused with every fault named."""

from __future__ import annotations

from fastapi.testclient import TestClient

from forecurve.recipes import PRESETS, preset
from forecurve.recipes.reference import json_schema
from tests.server.reporting import Headers, faults


def test_a_preset_with_changes_is_stored_and_read_back(api: TestClient, headers: Headers) -> None:
    body = {"name": "mine", "preset": "scalerl", "changes": {"optimizer.learning_rate": 1e-4}}
    answer = api.post("/v1/recipes", json=body, headers=headers["operate"])
    assert answer.status_code == 201, answer.text
    recipe = answer.json()
    assert recipe["name"] == recipe["body"]["name"] == "mine"
    assert recipe["body"]["optimizer"]["learning_rate"] == 1e-4
    assert api.get(f"/v1/recipes/{recipe['id']}", headers=headers["read"]).json() == recipe


def test_equal_content_under_an_equal_name_is_one_recipe(api: TestClient, headers: Headers) -> None:
    first = api.post("/v1/recipes", json={"preset": "scalerl"}, headers=headers["operate"])
    body = {"body": preset("scalerl").to_dict()}
    again = api.post("/v1/recipes", json=body, headers=headers["operate"])
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    renamed = api.post("/v1/recipes", json={**body, "name": "other"}, headers=headers["operate"])
    assert renamed.status_code == 201
    assert renamed.json()["digest"] == first.json()["digest"]
    assert renamed.json()["id"] != first.json()["id"]


def test_an_unknown_key_names_field_value_and_the_way_out(api: TestClient, headers: Headers) -> None:
    body = {"body": {"algorithm": {"los": "cispo"}, "optimizer": {"learning_rate": -1}}}
    answer = api.post("/v1/recipes", json=body, headers=headers["operate"])
    assert answer.status_code == 422
    named = faults(answer)
    assert "did you mean `loss`" in named["algorithm.los"]
    assert "more than 0" in named["optimizer.learning_rate"]
    assert {fault["value"] for fault in answer.json()["errors"]} == {"cispo", -1}
    assert api.get("/v1/recipes", headers=headers["read"]).json()["items"] == []


def test_a_recipe_must_be_named_in_one_way(api: TestClient, headers: Headers) -> None:
    for body, field in (
        ({"preset": "scalerl", "body": {}}, "preset"),
        ({}, "body"),
        ({"changes": {"seed": 1}}, "body"),
        ({"preset": "scalrl"}, "preset"),
        ({"preset": "scalerl", "changes": {"sead": 1}}, "sead"),
        ({"presett": "scalerl"}, "presett"),
    ):
        answer = api.post("/v1/recipes", json=body, headers=headers["operate"])
        assert answer.status_code == 422, body
        assert field in faults(answer), body


def test_presets_and_schema_are_there_to_read(api: TestClient, headers: Headers) -> None:
    items = api.get("/v1/recipes:presets", headers=headers["read"]).json()["items"]
    assert {item["name"]: item["digest"] for item in items} == {name: r.digest for name, r in PRESETS.items()}
    schema = api.get("/v1/recipes:schema", headers=headers["read"]).json()
    assert schema == json_schema(), "the same as `forecurve recipe schema` prints"


def test_lists_go_on_where_the_cursor_says(api: TestClient, headers: Headers) -> None:
    for seed in range(5):
        api.post("/v1/recipes", json={"preset": "scalerl", "changes": {"seed": seed}}, headers=headers["operate"])
    seen, cursor = [], None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = api.get("/v1/recipes", params=params, headers=headers["read"]).json()
        seen += [item["body"]["seed"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert len(page["items"]) == 1
    for bad in (0, 1001, "many"):
        assert "limit" in faults(api.get("/v1/recipes", params={"limit": bad}, headers=headers["read"]))


def test_an_unknown_recipe_is_404(api: TestClient, headers: Headers) -> None:
    answer = api.get("/v1/recipes/rec_nowhere", headers=headers["read"])
    assert answer.status_code == 404
    assert "recipe_id" in faults(answer)


def test_a_recipe_of_more_than_a_megabyte_is_413(api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/recipes", json={"body": {"name": "x" * 1024 * 1024}}, headers=headers["operate"])
    assert answer.status_code == 413
    assert answer.json()["code"] == "too-large"
