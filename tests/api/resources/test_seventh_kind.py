"""A new kind has the whole API after its registration alone: the tests of all kinds pass for it."""

from collections.abc import Iterator

import pytest

from app.running.application import create_app
from tests.api.resources import test_every_kind, test_every_kind_submissions
from tests.support.gateways.gateway import Gateway
from tests.support.kinds.every_kind import Collection
from tests.support.kinds.made_up import NoteKind, a_seventh_kind

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module", autouse=True)
def note() -> Iterator[NoteKind]:
    with a_seventh_kind() as registered:
        yield registered


@pytest.fixture
def kind(note: NoteKind) -> str:
    return note.name


@pytest.fixture
def of(kind: str, shared_gateway: Gateway) -> Collection:
    return Collection(shared_gateway, kind)


# Collect the same tests with the fixtures of this module.
for _suite in (test_every_kind, test_every_kind_submissions):
    globals().update({name: test for name, test in vars(_suite).items() if name.startswith("test_")})


async def test_the_status_has_the_figures_of_the_kind(of: Collection) -> None:
    await of.submit()
    assert (await of.get("one", "status")).json()["status"]["words"] == 2
    await of.patch({"spec": {"text": "one"}})
    edited = (await of.get("one")).json()
    assert (edited["generation"], edited["status"]["words"]) == (2, 1)


async def test_the_schemas_and_operations_of_the_kind_are_documented() -> None:
    document = create_app().openapi()
    assert {"Note", "NoteStatus", "NoteState", "NotePage", "NoteManifest", "NoteManifestSpec", "NoteSubmission"} <= set(
        document["components"]["schemas"]
    )
    operations = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert {
        "submit_note",
        "submit_note_batch",
        "dry_run_note",
        "list_notes",
        "get_note",
        "get_note_by_uid",
        "watch_notes",
    } <= operations
    paths = [path.replace("samplejobs", "notes") for path in document["paths"] if "samplejobs" in path]
    assert set(paths) <= set(document["paths"]), "a Note has the same routes as a SampleJob"
