"""The requests of which docs/api.md says that they have an Idempotency-Key are those of the OpenAPI document."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_names_the_requests_with_an_idempotency_key() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    [sentence] = re.findall(r"a request that creates objects.*?: `POST` of (.*?)\.\s", text, re.DOTALL)
    named = {f"post {path}" for path in re.findall(r"`…/jobs(.*?)`", sentence)}
    paths = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))["paths"]
    found = {
        f"{method} {path.partition('/jobs')[2]}"
        for path, item in paths.items()
        for method, operation in item.items()
        if "/jobs" in path and "Idempotency-Key" in {one["name"] for one in operation.get("parameters", ())}
    }
    assert named == found
