"""The JSON schemas of GET /api/v1/kinds are valid and accept the same examples and golden manifests as the gateway."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from app.domain.kinds import registry
from app.domain.kinds.registry import all_kinds
from tests.support.gateways.gateway import Gateway, jobs_path

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXAMPLES = Path(__file__).parents[3] / "examples"
GOLDEN = Path(__file__).parents[2] / "data"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Manifests with an older spelling, or with "" for a default. The gateway accepts them, and stores what the schema says.
OLDER_SPELLING = {"generic_job/old_spelling", "mx_job/everything"}
KINDS = sorted({kind.name for kind in registry.JOB_KINDS.values()})
EVERY_KIND = sorted(all_kinds())


@cache
def examples() -> dict[str, dict[str, Any]]:
    """Return every job of the examples, by its file and its place in the file."""
    found = {}
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text(encoding="utf-8"))):
            if document and document.get("kind") in KINDS:
                found[f"{path.relative_to(EXAMPLES)}#{number}"] = document
    return found


def golden() -> list[Path]:
    """Return the files of the golden manifests of jobs."""
    files = sorted(GOLDEN.glob("*/*/manifest.yaml"))
    return [file for file in files if yaml.safe_load(file.read_text(encoding="utf-8"))["kind"] in KINDS]


async def schemas(gateway: Gateway) -> dict[str, dict[str, Any]]:
    items = (await gateway.client.get("/api/v1/kinds")).json()["items"]
    return {item["kind"]: item["jsonSchema"] for item in items}


async def test_every_kind_is_listed_once_with_its_schema(shared_gateway: Gateway) -> None:
    items = (await shared_gateway.client.get("/api/v1/kinds")).json()["items"]
    assert sorted(item["kind"] for item in items) == EVERY_KIND
    for item in items:
        assert item["apiVersions"]
        schema = {"$schema": DRAFT} | item["jsonSchema"]
        assert schema["$schema"] == DRAFT
        jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize("file", examples())
async def test_the_schema_accepts_every_example(file: str, shared_gateway: Gateway) -> None:
    document = examples()[file]
    schema = (await schemas(shared_gateway))[document["kind"]]
    errors = jsonschema_rs.Draft202012Validator(schema).iter_errors(document)
    assert [(error.instance_path, error.message) for error in errors] == []


@pytest.mark.parametrize("file", golden(), ids=lambda path: "-".join(path.parts[-3:-1]))
async def test_the_schema_accepts_golden_manifests_before_and_after_defaults(
    file: Path, shared_gateway: Gateway
) -> None:
    found = await schemas(shared_gateway)
    for name in ("manifest.yaml", "accepted.yaml"):
        document = yaml.safe_load(file.with_name(name).read_text(encoding="utf-8"))
        document.pop("assigned", None)
        schema = jsonschema_rs.Draft202012Validator(found[document["kind"]])
        errors = [(error.instance_path, error.message) for error in schema.iter_errors(document)]
        older = name == "manifest.yaml" and "/".join(file.parts[-3:-1]) in OLDER_SPELLING
        assert bool(errors) == older, (name, errors)


@pytest.mark.parametrize(("version", "kind"), sorted(registry.JOB_KINDS))
async def test_the_schema_accepts_every_api_version(version: str, kind: str, shared_gateway: Gateway) -> None:
    document = next(item for item in examples().values() if item["kind"] == kind) | {"apiVersion": version}
    schema = jsonschema_rs.Draft202012Validator((await schemas(shared_gateway))[kind])
    assert schema.is_valid(document)
    assert not schema.is_valid(document | {"apiVersion": version + "0"})


@pytest.mark.parametrize("file", examples())
async def test_the_gateway_accepts_every_example(file: str, shared_gateway: Gateway) -> None:
    document = examples()[file]
    namespace = document["metadata"].get("namespace", "team")
    answer = await shared_gateway.client.post(jobs_path(namespace), json=document, params={"dryRun": "All"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [{"spec": None}, {"spec": {"nothing": 1}}, {"metadata": "name"}, {"extra": 1}])
async def test_the_schema_refuses_what_the_gateway_refuses(
    kind: str, wrong: dict[str, Any], shared_gateway: Gateway
) -> None:
    document = next(item for item in examples().values() if item["kind"] == kind) | wrong
    answer = await shared_gateway.client.post(jobs_path(), json=document, params={"dryRun": "All"})
    assert answer.status_code == 422
    assert not jsonschema_rs.Draft202012Validator((await schemas(shared_gateway))[kind]).is_valid(document)
