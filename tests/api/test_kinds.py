"""The schemas of GET /api/v1/kinds: valid, and as willing as the gateway itself about what each kind ships."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from app.domain.dialects import registry
from app.domain.kinds.registry import registered
from tests.support.gateway import Gateway, jobs_path

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parents[1] / "data"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Spelt as older versions of their systems did, or with "" for a default: taken, and stored as the schema says.
OLDER = {"generic_job/old_spelling", "mx_job/everything"}
KINDS = sorted({dialect.kind for dialect in registry.DIALECTS.values()})
EVERY_KIND = sorted(registered())


@cache
def shipped() -> dict[str, dict[str, Any]]:
    """Every job among the examples, by the file that it is in."""
    found = {}
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text(encoding="utf-8"))):
            if document and document["kind"] in KINDS:
                found[f"{path.relative_to(EXAMPLES)}#{number}"] = document
    return found


def golden() -> list[Path]:
    """The golden manifests of jobs."""
    files = sorted(GOLDEN.glob("*/*/manifest.yaml"))
    return [file for file in files if yaml.safe_load(file.read_text(encoding="utf-8"))["kind"] in KINDS]


async def schemas(gateway: Gateway) -> dict[str, dict[str, Any]]:
    items = (await gateway.client.get("/api/v1/kinds")).json()["items"]
    return {item["kind"]: item["jsonSchema"] for item in items}


async def test_every_kind_is_listed_once_with_its_schema(hostile: Gateway) -> None:
    items = (await hostile.client.get("/api/v1/kinds")).json()["items"]
    assert sorted(item["kind"] for item in items) == EVERY_KIND
    for item in items:
        assert item["apiVersions"]
        schema = {"$schema": DRAFT} | item["jsonSchema"]
        assert schema["$schema"] == DRAFT
        jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize("file", shipped())
async def test_the_schema_takes_what_is_shipped(file: str, hostile: Gateway) -> None:
    document = shipped()[file]
    schema = (await schemas(hostile))[document["kind"]]
    errors = jsonschema_rs.Draft202012Validator(schema).iter_errors(document)
    assert [(error.instance_path, error.message) for error in errors] == []


@pytest.mark.parametrize("file", golden(), ids=lambda path: "-".join(path.parts[-3:-1]))
async def test_the_schema_takes_what_is_posted_and_what_is_made_of_it(file: Path, hostile: Gateway) -> None:
    found = await schemas(hostile)
    for name in ("manifest.yaml", "accepted.yaml"):
        document = yaml.safe_load(file.with_name(name).read_text(encoding="utf-8"))
        document.pop("assigned", None)
        schema = jsonschema_rs.Draft202012Validator(found[document["kind"]])
        errors = [(error.instance_path, error.message) for error in schema.iter_errors(document)]
        older = name == "manifest.yaml" and "/".join(file.parts[-3:-1]) in OLDER
        assert bool(errors) == older, (name, errors)


@pytest.mark.parametrize(("version", "kind"), sorted(registry.DIALECTS))
async def test_every_version_that_is_spoken_is_in_the_schema(version: str, kind: str, hostile: Gateway) -> None:
    document = next(item for item in shipped().values() if item["kind"] == kind) | {"apiVersion": version}
    schema = jsonschema_rs.Draft202012Validator((await schemas(hostile))[kind])
    assert schema.is_valid(document)
    assert not schema.is_valid(document | {"apiVersion": version + "0"})


@pytest.mark.parametrize("file", shipped())
async def test_the_gateway_takes_what_is_shipped(file: str, hostile: Gateway) -> None:
    document = shipped()[file]
    namespace = document["metadata"].get("namespace", "team")
    answer = await hostile.client.post(jobs_path(namespace), json=document, params={"dryRun": "All"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [{"spec": None}, {"spec": {"nothing": 1}}, {"metadata": "name"}, {"extra": 1}])
async def test_the_schema_refuses_what_the_gateway_refuses(kind: str, wrong: dict[str, Any], hostile: Gateway) -> None:
    document = next(item for item in shipped().values() if item["kind"] == kind) | wrong
    answer = await hostile.client.post(jobs_path(), json=document, params={"dryRun": "All"})
    assert answer.status_code == 422
    assert not jsonschema_rs.Draft202012Validator((await schemas(hostile))[kind]).is_valid(document)
