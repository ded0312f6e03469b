"""The OpenAPI document that the tests examine."""

from typing import Any

import pytest

from app.running.application import create_app


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app().openapi()
