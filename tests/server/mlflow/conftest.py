"""MLflow's client, at the API."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from tests.server.mlflow.logging import Logger
from tests.server.reporting import Headers


@pytest.fixture
def logger(api: TestClient, headers: Headers) -> Logger:
    return Logger(api, headers)
