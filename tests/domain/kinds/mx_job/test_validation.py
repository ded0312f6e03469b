"""Everything that an MxJob may have wrong: where it is reported, under which code, in which order."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.accelerators import accelerators_of
from app.domain.kinds.job_kind import Accelerator, Limits
from app.domain.manifests.rendered import objects_of
from app.domain.plan import Manifest
from tests.domain.kinds.mx_job.test_golden import KIND, plan_of
from tests.support.plans import GIVEN, errors_of, reserved

SPECS = "/spec/replicaSpecs"


def template(name: str = "mxnet") -> Manifest:
    return {"spec": {"containers": [{"name": name, "image": "mxnet"}]}}


def role(name: str | None = "WORKER", **changes: Any) -> Manifest:
    return {"mxReplicaType": name, "template": template(), **changes}


DIST = [role("SCHEDULER"), role("SERVER"), role("WORKER")]


def a_manifest(mode: Any, *replicas: Any, **spec: Any) -> Manifest:
    return {
        "apiVersion": "mxnet.mlkube.io/v1beta1",
        "kind": "MxJob",
        "metadata": {"name": "job"},
        "spec": {"jobMode": mode, "replicaSpecs": list(replicas), **spec},
    }


# Upstream's own checks, in upstream's words; the mode's name is spelt "unkonw" there.
UPSTREAM = [
    ([None, *DIST], "dist", f"{SPECS}/0", "ReplicaSpecsContainNil", "ReplicaSpecs contain nil"),
    (
        [role("SCHEDULER", template=None), *DIST[1:]],
        "dist",
        f"{SPECS}/0/template",
        "MissingTemplate",
        "Replica is missing Template",
    ),
    (
        [*DIST, role("PS")],
        "dist",
        f"{SPECS}/3/mxReplicaType",
        "InvalidReplicaType",
        "MxReplicaSpec.MxReplicaType is PS but must be one of [SCHEDULER SERVER WORKER]",
    ),
    (
        [*DIST[:2], role("WORKER", template=template("main"))],
        "dist",
        f"{SPECS}/2/template/spec/containers",
        "MissingMxnetContainer",
        "Replica type WORKER is missing a container for mxnet",
    ),
    (
        [role("SERVER"), role("WORKER")],
        "local",
        f"{SPECS}/0/mxReplicaType",
        "RolesInLocalMode",
        "job mode is local, but its replicas set have replicas type other than worker",
    ),
    (
        [role(replicas=2)],
        "local",
        f"{SPECS}/0/replicas",
        "WorkersInLocalMode",
        "job mode is local, but it has more than 1 worker",
    ),
    (DIST[:2], "dist", SPECS, "MissingReplicaType", "dist job mode without replica type WORKER"),
    (DIST, "mpi", "/spec/jobMode", "UnknownJobMode", "unknown job mode mpi"),
    (DIST, None, "/spec/jobMode", "UnknownJobMode", "unknown job mode"),
    (
        [role("SCHEDULER", replicas=2), *DIST[1:]],
        "dist",
        f"{SPECS}/0/replicas",
        "SchedulerReplicas",
        "The SCHEDULER must have Replicas = 1",
    ),
    (
        [role("SCHEDULER", replicas=0), *DIST[1:]],
        "dist",
        f"{SPECS}/0/replicas",
        "SchedulerReplicas",
        "The SCHEDULER must have Replicas = 1",
    ),
]


@pytest.mark.parametrize(("replicas", "mode", "pointer", "code", "detail"), UPSTREAM)
def test_what_upstream_checks(replicas: list[Any], mode: str | None, pointer: str, code: str, detail: str) -> None:
    (error,) = errors_of(KIND, a_manifest(mode, *replicas))
    assert (error.pointer, error.code, error.detail) == (pointer, code, detail)
    assert error.accepted


OURS: list[tuple[Manifest, str, str]] = [
    (a_manifest("dist", *DIST, role("WORKER")), f"{SPECS}/3/mxReplicaType", "Duplicate"),
    (a_manifest("local", role(), role(None)), f"{SPECS}/1/mxReplicaType", "Duplicate"),
    (a_manifest("dist", *DIST[:2], role(replicas=0)), f"{SPECS}/2/replicas", "OutOfRange"),
    (a_manifest("dist", DIST[0], role("SERVER", replicas=-1), DIST[2]), f"{SPECS}/1/replicas", "OutOfRange"),
    (a_manifest("local", role(replicas=0)), f"{SPECS}/0/replicas", "OutOfRange"),
    (a_manifest("local"), SPECS, "NoReplicas"),
    (a_manifest("local", role(PsRootPort=0)), f"{SPECS}/0/PsRootPort", "OutOfRange"),
    (a_manifest("local", role(PsRootPort=65_536)), f"{SPECS}/0/PsRootPort", "OutOfRange"),
    (a_manifest("local", role(PsRootPort="9091")), f"{SPECS}/0/PsRootPort", "InvalidType"),
    (a_manifest("local", role(replicas="1")), f"{SPECS}/0/replicas", "InvalidType"),
    (a_manifest("local", role(template="x")), f"{SPECS}/0/template", "InvalidType"),
    (a_manifest("local", role(7)), f"{SPECS}/0/mxReplicaType", "InvalidType"),  # type: ignore[arg-type]
    (a_manifest(7, *DIST), "/spec/jobMode", "InvalidType"),
    (a_manifest("dist", 7), f"{SPECS}/0", "InvalidType"),
    (a_manifest("local", role(replica=1)), f"{SPECS}/0/replica", "UnknownField"),
    (a_manifest("local", role(), runtimeId="x"), "/spec/runtimeId", "UnknownField"),
    (a_manifest("local", role(), RuntimeId="A_b"), "/spec/RuntimeId", "InvalidName"),
    (a_manifest("local", role(), RuntimeId="x" * 60), "/metadata/name", "NameTooLong"),
    (a_manifest("dist", *DIST[:2], role(replicas=10_000)), SPECS, "TooManyReplicas"),
    (a_manifest("local", *[None] * 65), SPECS, "TooMany"),
    ({**a_manifest("local", role()), "spec": None}, "/spec", "InvalidType"),
]


@pytest.mark.parametrize(("manifest", "pointer", "code"), OURS)
def test_what_upstream_does_not_check(manifest: Manifest, pointer: str, code: str) -> None:
    (error,) = errors_of(KIND, manifest)
    assert (error.pointer, error.code) == (pointer, code)


def test_all_errors_at_once_in_upstreams_order() -> None:
    manifest = a_manifest(
        "dist",
        role("SCHEDULER", replicas=3),
        role("PS", template=template("main")),
        None,
        role("WORKER", template=None),
        role("WORKER", replicas=-1, template={"spec": {"containers": [{"name": "mxnet", "image": "i", "imag": "x"}]}}),
        RuntimeId="-",
    )
    assert [error.code for error in errors_of(KIND, manifest)] == [
        "ReplicaSpecsContainNil",
        "MissingTemplate",
        "InvalidReplicaType",
        "MissingMxnetContainer",
        "MissingReplicaType",
        "SchedulerReplicas",
        "Duplicate",
        "OutOfRange",
        "InvalidName",
        "UnknownField",
    ]


def test_other_errors_are_reported_together_with_a_wrong_shape() -> None:
    manifest = a_manifest("mpi", role(replicas="2"), role("PS", template=template("main")))
    assert [(error.pointer, error.code) for error in errors_of(KIND, manifest)] == [
        (f"{SPECS}/0/replicas", "InvalidType"),
        (f"{SPECS}/1/mxReplicaType", "InvalidReplicaType"),
        (f"{SPECS}/1/template/spec/containers", "MissingMxnetContainer"),
        ("/spec/jobMode", "UnknownJobMode"),
    ]


def named(name: str, mode: str = "dist", servers: int = 1) -> Manifest:
    replicas = [DIST[0], role("SERVER", replicas=servers), DIST[2]] if mode == "dist" else [role()]
    return {**a_manifest(mode, *replicas), "metadata": {"name": name}}


# "-scheduler-x7k2-0" has 17 characters, "-server-x7k2-100" 16.
@pytest.mark.parametrize(
    ("manifest", "codes"),
    [
        (named("a" * 46), []),
        (named("a" * 47), ["NameTooLong"]),
        (named("a" * 46, servers=101), []),
        (named("a" * 46, servers=1001), []),
        (named("a" * 46, servers=9_000), []),
        (named("a.b"), ["InvalidName"]),
        (named("1a"), ["InvalidName"]),
        (named("1.b" * 16), ["NameTooLong", "InvalidName"]),
        (named("1.b", "local"), []),
        (named("a" * 49, "local"), []),
        (named("a" * 50, "local"), ["NameTooLong"]),
    ],
)
def test_names_are_checked_for_the_last_replica(manifest: Manifest, codes: list[str]) -> None:
    if not codes:
        assert max(len(name) for kind, name in reserved(plan_of(manifest)) if kind == "pod") <= 63
        return
    assert [error.code for error in errors_of(KIND, manifest)] == codes


def test_a_controller_config_is_read() -> None:
    found = accelerators_of({"accelerators": {"a/b": {"volumes": [], "envVars": [{"name": "A"}]}, "c/d": {}}})
    assert found == {"a/b": Accelerator(env=({"name": "A", "value": ""},)), "c/d": Accelerator()}


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({}, "/accelerators"),
        ([], ""),
        ({"accelerators": {"a": {"volume": []}}}, "/accelerators/a/volume"),
        (
            {"accelerators": {"a": {"volumes": [{"name": "v", "hostPath": "/v"}]}}},
            "/accelerators/a/volumes/0/mountPath",
        ),
    ],
)
def test_a_controller_config_that_is_wrong(document: Any, pointer: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        accelerators_of(document)
    assert [error.pointer for error in refused.value.errors] == [pointer]


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(
    scalars | st.sampled_from(["WORKER", "SCHEDULER", "dist"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
replica_specs = st.fixed_dictionaries(
    {},
    optional={
        "mxReplicaType": st.sampled_from(["SCHEDULER", "SERVER", "WORKER", ""]) | values,
        "replicas": st.integers(-1, 4) | values,
        "PsRootPort": st.integers(-1, 70_000) | values,
        "template": st.builds(template) | values,
    },
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "RuntimeId": st.from_regex("[a-z0-9-]{0,5}", fullmatch=True) | values,
        "jobMode": st.sampled_from(["local", "dist"]) | values,
        "replicaSpecs": st.lists(replica_specs | values, max_size=4) | values,
    },
)


def outcome(manifest: Manifest) -> tuple[Manifest | None, tuple[FieldError, ...]]:
    try:
        return KIND.accept(manifest, Limits(max_replicas=20), GIVEN).manifest, ()
    except InvalidManifest as refused:
        return None, refused.errors


@given(spec=specs | values, name=st.sampled_from(["job", "a.b", "1"]))
@settings(max_examples=300)
def test_any_manifest_is_accepted_or_refused_with_pointers(spec: Any, name: str) -> None:
    manifest = {**a_manifest("dist"), "metadata": {"name": name}, "spec": spec}
    stored, errors = outcome(manifest)
    assert all(error.pointer.startswith("/") or error.code == "TooManyErrors" for error in errors)
    if stored is None:
        assert errors
        return
    assert outcome(stored) == (stored, ())
    assert list(objects_of(plan_of(stored)))


@given(servers=st.integers(1, 4), workers=st.integers(1, 4))
def test_every_accepted_job_can_be_planned(servers: int, workers: int) -> None:
    manifest = a_manifest("dist", DIST[0], role("SERVER", replicas=servers), role("WORKER", replicas=workers))
    plan = plan_of(manifest)
    assert len(plan.replicas) == 1 + servers + workers
    assert sorted(replica.global_rank for replica in plan.replicas.values()) == list(range(1 + servers + workers))
