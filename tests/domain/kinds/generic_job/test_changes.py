"""What of a stored GenericJob may be changed, by an edit or by a pause."""

from typing import Any

import pytest

from app.domain.errors import Conflict
from app.domain.kinds.changes import is_respecified
from app.domain.kinds.job_kind import Limits
from app.domain.plan import Manifest
from tests.domain.kinds.generic_job.test_validation import KIND, PORTS, REPLICA, a_manifest, command, replica
from tests.support.plans import GIVEN

STORED = KIND.accept(a_manifest(), Limits(), GIVEN).manifest


def mutate(manifest: Manifest, pointer: str, value: Any) -> Manifest:
    """A deep enough copy of the manifest with one place changed."""
    first, *rest = pointer.split("/")[1:]
    child = manifest.get(first, {})
    return {**manifest, first: mutate(child, "/" + "/".join(rest), value) if rest else value}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/metadata/labels", {"team": "vision"}),
        ("/metadata/annotations", {"jobgate.dev/ttl-seconds-after-finished": "5"}),
        ("/spec/cleanUpPolicy", "All"),
        ("/spec/runMode", {"pause": {"enabled": True}}),
        ("/spec/runMode", {"pause": {"enable": True}}),
        ("/spec/runMode", {"debug": {"enabled": False}}),
        ("/spec/successRules", []),
    ],
)
def test_mutable_fields_can_be_changed(pointer: str, value: Any) -> None:
    new = KIND.accept(mutate(a_manifest(), pointer, value), Limits(), GIVEN).manifest
    assert not KIND.changes(STORED, new)


@pytest.mark.parametrize(
    ("pointer", "value", "expected"),
    [
        ("/metadata/name", "other", "/metadata/name"),
        ("/spec/runMode", {"debug": {"enabled": True}}, "/spec/runMode/debug/enabled"),
        (
            "/spec/runMode",
            {"pause": {"resumeSpecs": [{"type": "worker"}]}},
            "/spec/runMode/pause/resumeSpecs",
        ),
        ("/spec/replicaSpecs", replica(replicas=3), f"{REPLICA}/replicas"),
        ("/spec/replicaSpecs", command("other", "1"), f"{REPLICA}/template/spec/containers/0/image"),
        ("/spec/successRules", [{"worker": [0]}], "/spec/successRules"),
        ("/spec/service", {"ports": PORTS}, "/spec/service"),
    ],
)
def test_changes_of_immutable_fields_are_refused(pointer: str, value: Any, expected: str) -> None:
    new = KIND.accept(mutate(a_manifest(), pointer, value), Limits(), GIVEN).manifest
    changes = KIND.changes(STORED, new)
    assert changes[0].pointer == expected
    assert {change.code for change in changes} == {"Immutable"}


def test_pause_and_resume() -> None:
    paused = KIND.with_pause(KIND.read(STORED), paused=True).manifest
    assert paused["spec"]["runMode"]["pause"]["enabled"] is True
    assert not KIND.changes(STORED, paused)
    assert KIND.with_pause(KIND.read(paused), paused=False).manifest == STORED


def test_a_job_in_debug_mode_is_not_paused() -> None:
    debugged = KIND.accept(a_manifest(runMode={"debug": {"enabled": True}}), Limits(), GIVEN).manifest
    with pytest.raises(Conflict):
        KIND.with_pause(KIND.read(debugged), paused=True)


@pytest.mark.parametrize(
    ("before", "after", "respecified"),
    [
        ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": "2"}}}, False),
        ({"spec": {"size": 1, "mode": "a"}}, {"spec": {"mode": "a", "size": 1}}, False),
        ({"spec": {"size": 1}}, {"spec": {"size": 2}}, True),
        ({"spec": {"value": 1}}, {"spec": {"value": True}}, True),
    ],
    ids=["labels", "order of fields", "a value", "a type that Python finds equal"],
)
def test_which_changes_increase_the_generation(*, before: Manifest, after: Manifest, respecified: bool) -> None:
    assert is_respecified(before, after) is respecified
