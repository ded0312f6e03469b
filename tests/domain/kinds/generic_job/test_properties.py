"""Whatever a document holds, it is accepted whole or refused with pointers; and what is accepted can be planned."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.generic_job import GenericJobKind
from app.domain.kinds.job_kind import Limits
from app.domain.manifests.rendered import count_objects, objects_of
from app.domain.plan import Manifest
from tests.domain.kinds.generic_job.test_changes import mutate
from tests.domain.kinds.generic_job.test_golden import plan_of
from tests.domain.kinds.generic_job.test_validation import a_manifest
from tests.support.plans import GIVEN, reserved

KIND = GenericJobKind()
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars | st.sampled_from(["worker", "0", "OnFailure", "$(rank)", "$(service.worker[0].host)"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
POINTERS = [
    "/metadata",
    "/metadata/name",
    "/metadata/labels",
    "/metadata/annotations",
    "/spec",
    "/spec/replicaSpecs",
    "/spec/replicasSpec",
    "/spec/successRules",
    "/spec/failureRules",
    "/spec/service",
    "/spec/runMode",
    "/spec/cleanUpPolicy",
    "/spec/scheduler",
    "/status",
]
REPLICA_FIELDS = ["type", "replicas", "restartPolicy", "template"]


def outcome(manifest: Manifest) -> Manifest | None:
    errors: tuple[FieldError, ...] = ()
    try:
        return KIND.accept(manifest, Limits(max_replicas=50), GIVEN).manifest
    except InvalidManifest as refused:
        errors = refused.errors
    assert errors
    assert all(error.pointer.startswith("/") or error.code == "TooManyErrors" for error in errors)
    return None


def check(manifest: Manifest) -> None:
    accepted = outcome(manifest)
    if accepted is None:
        return
    assert outcome(accepted) == accepted
    assert not KIND.changes(accepted, accepted)
    plan = plan_of(accepted)
    assert len(list(objects_of(plan))) == count_objects(plan) >= 2
    names = reserved(plan)
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for _, name in names)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(POINTERS), values)
def test_any_value_at_any_place(pointer: str, value: Any) -> None:
    check(mutate(a_manifest(), pointer, value))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(REPLICA_FIELDS), values)
def test_any_value_in_a_replica_spec(field: str, value: Any) -> None:
    manifest = a_manifest()
    manifest["spec"]["replicaSpecs"][0][field] = value
    check(manifest)


names = st.text("ab-", min_size=1, max_size=4)
rules = st.lists(st.dictionaries(names, st.lists(st.integers(0, 4) | st.just("1"), max_size=3), max_size=2), max_size=3)


@settings(max_examples=300, deadline=None)
@given(
    tasks=st.lists(st.tuples(names, st.integers(0, 5)), min_size=1, max_size=3),
    success=rules,
    failure=rules,
    ports=st.lists(st.builds(lambda n, p: {"name": n, "port": p}, names, st.integers(1, 9)), max_size=2),
    text=st.sampled_from(["$(rank)", "$(replicas[a])", "$(service.a[0].host)", "$(service.port[a])", "x"]),
)
def test_nearly_valid_jobs_are_accepted_or_refused(
    tasks: list[tuple[str, int]],
    success: list[dict[str, Any]],
    failure: list[dict[str, Any]],
    ports: list[dict[str, Any]],
    text: str,
) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i", "args": [text]}]}}
    specs = [{"type": name, "replicas": count, "template": template} for name, count in tasks]
    check(a_manifest(replicaSpecs=specs, successRules=success, failureRules=failure, service={"ports": ports}))
