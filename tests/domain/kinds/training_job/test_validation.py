"""Everything that a TrainingJob may have wrong: where it is reported, and under which code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidManifest
from app.domain.kinds.envelope import postable
from app.domain.kinds.job_kind import Limits, Site
from app.domain.kinds.training_job import TrainingJobKind
from app.domain.kinds.training_job.validation import NOT_FAULT_TOLERANT
from app.domain.manifests.rendered import objects_of, reserved_names
from app.domain.plan import Manifest
from tests.domain.kinds.training_job.test_golden import identity
from tests.support.plans import GIVEN, errors_of

KIND = TrainingJobKind()
TOLERANT = {"fault_tolerant": True}
NCCL2 = {"frame_work": {"name": "paddle", "type": "nccl2"}}
TENSORFLOW = {"frame_work": {"name": "tensorflow", "type": "multi"}}


def a_manifest(job: str = "job", /, **spec: Any) -> Manifest:
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": job},
        "spec": {"trainer": {"min-instance": 2}, "pserver": {"min-instance": 1}} | spec,
    }


def trainer(**fields: Any) -> Manifest:
    return {"trainer": {"min-instance": 2} | fields}


def pserver(**fields: Any) -> Manifest:
    return {"pserver": {"min-instance": 1} | fields}


WRONG = [
    ({"trainer": []}, "/spec/trainer", "InvalidType"),
    ({"imagee": "x"}, "/spec/imagee", "UnknownField"),
    ({"volumeMounts": []}, "/spec/volumeMounts", "UnknownField"),
    ({"trainer": {"min_instances": 2}}, "/spec/trainer/min_instances", "UnknownField"),
    (trainer(**{"min-instance": -1}), "/spec/trainer/min-instance", "OutOfRange"),
    (trainer(**{"min-instance": "2"}), "/spec/trainer/min-instance", "InvalidType"),
    (TOLERANT | trainer(**{"max-instance": 1}), "/spec/trainer/max-instance", "OutOfRange"),
    (trainer(**{"max-instance": 3}), "/spec/trainer/max-instance", "NotFaultTolerant"),
    (pserver(**{"min-instance": 3, "max-instance": 2}), "/spec/pserver/max-instance", "OutOfRange"),
    (pserver(**{"max-instance": -2}), "/spec/pserver/max-instance", "OutOfRange"),
    ({"passes": -1}, "/spec/passes", "OutOfRange"),
    ({"port": 70000}, "/spec/port", "OutOfRange"),
    ({"port": 65535}, "/spec/ports_num", "OutOfRange"),
    ({"ports_num": 60000}, "/spec/ports_num", "OutOfRange"),
    ({"ports_num_for_sparse": -1}, "/spec/ports_num_for_sparse", "OutOfRange"),
    (TENSORFLOW | {"trainer_ports_num": 1}, "/spec/trainer_port", "OutOfRange"),
    (TENSORFLOW | {"trainer_port": 65535, "trainer_ports_num": 2}, "/spec/trainer_ports_num", "OutOfRange"),
    ({"is_nccl": True, "port": 65535}, "/spec/ports_num", "OutOfRange"),
    ({"is_nccl": True, "port": 65535, "trainer_port": 65535}, "/spec/ports_num", "OutOfRange"),
    (NCCL2 | {"is_nccl": True, "trainer_port": 65535, "trainer_ports_num": 2}, "/spec/trainer_ports_num", "OutOfRange"),
    ({"frame_work": {"name": "torch", "type": "multi"}}, "/spec/frame_work/name", "InvalidValue"),
    ({"frame_work": {"name": "paddle", "type": "ring"}}, "/spec/frame_work/type", "InvalidValue"),
    ({"frame_work": {"name": "paddle"}}, "/spec/frame_work/type", "Required"),
    ({"annotations": {"walltime": "soon"}}, "/spec/annotations/walltime", "InvalidType"),
    ({"annotations": {"walltime": -1}}, "/spec/annotations/walltime", "OutOfRange"),
    ({"annotations": {"walltime": 10**12}}, "/spec/annotations/walltime", "OutOfRange"),
    ({"annotations": {"walltime": True}}, "/spec/annotations/walltime", "InvalidType"),
    ({"annotations": {"priority": "a b"}}, "/spec/annotations/priority", "InvalidLabel"),
    ({"volumes": [{"name": "A"}]}, "/spec/volumes/0/name", "Invalid"),
    ({"volumes": [{"name": "a", "emptyDirr": {}}]}, "/spec/volumes/0/emptyDirr", "UnknownField"),
    ({"VolumeMounts": [{"name": "none", "mountPath": "/x"}]}, "/spec/VolumeMounts/0/name", "NotFound"),
    (TOLERANT | {"volumes": [{"name": "jobgate-hosts", "emptyDir": {}}]}, "/spec/volumes/0/name", "Reserved"),
    (
        TOLERANT
        | {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "VolumeMounts": [{"name": "v", "mountPath": "/etc/jobgate/hosts/"}],
        },
        "/spec/VolumeMounts/0/mountPath",
        "Reserved",
    ),
    (trainer(resources={"limits": {"cpu": "much"}}), "/spec/trainer/resources/limits/cpu", "Invalid"),
    (trainer(resources={"limit": {}}), "/spec/trainer/resources/limit", "UnknownField"),
    (pserver(envs={"A=": "x"}), "/spec/pserver/envs/A=", "Invalid"),
    (pserver(envs={"A": 1}), "/spec/pserver/envs/A", "InvalidType"),
    (pserver(tolerations=[{"key": "k", "operator": "Maybe"}]), "/spec/pserver/tolerations/0/operator", "NotSupported"),
    (trainer(node_selector={"-": "x"}), "/spec/trainer/node_selector/-", "Invalid"),
    (trainer(liveness_probe={"tcpSocket": {}}), "/spec/trainer/liveness_probe/tcpSocket/port", "Required"),
    (
        pserver(readiness_probe={"tcpSocket": {"port": 1}, "http": 1}),
        "/spec/pserver/readiness_probe/http",
        "UnknownField",
    ),
    (trainer(grace_period_seconds=-1), "/spec/trainer/grace_period_seconds", "OutOfRange"),
    (
        TOLERANT | {"master": {"tolerations": [{"key": "k", "effect": "x"}]}},
        "/spec/master/tolerations/0/effect",
        "NotSupported",
    ),
    (trainer(imagePullSecrets=[{"nam": "x"}]), "/spec/trainer/imagePullSecrets/0/nam", "UnknownField"),
]


@pytest.mark.parametrize(("spec", "pointer", "code"), WRONG)
def test_errors_have_the_pointers_of_the_posted_fields(spec: Manifest, pointer: str, code: str) -> None:
    errors = errors_of(KIND, a_manifest(**spec))
    assert [(error.pointer, error.code) for error in errors] == [(pointer, code)]


def test_upstreams_own_message_is_kept() -> None:
    (error,) = errors_of(KIND, a_manifest(**trainer(**{"max-instance": 3})))
    assert error.detail == NOT_FAULT_TOLERANT
    assert error.detail == "max-instances should be equal to min-instances when fault_tolerant is disabled"


@pytest.mark.parametrize(
    ("job", "spec", "codes"),
    [
        ("a.b", {}, ["InvalidName"]),
        ("1st", {}, ["InvalidName"]),
        ("j" * 51, {}, []),
        ("j" * 52, {}, ["NameTooLong"]),
        ("j" * 53, {}, ["NameTooLong"]),
        ("j" * 54, {}, ["NameTooLong", "NameTooLong"]),
        ("j" * 51, TOLERANT | trainer(**{"max-instance": 1000}), []),
        ("j" * 51, TOLERANT | trainer(**{"max-instance": 1001}), ["NameTooLong"]),
    ],
)
def test_names_are_checked_for_the_largest_size(job: str, spec: Manifest, codes: list[str]) -> None:
    manifest = a_manifest(job, **spec)
    if not codes:
        assert KIND.accept(manifest, Limits(), GIVEN).manifest
        return
    assert [(error.pointer, error.code) for error in errors_of(KIND, manifest)] == [
        ("/metadata/name", code) for code in codes
    ]


def test_all_errors_come_at_once() -> None:
    errors = errors_of(
        KIND,
        a_manifest(
            "A",
            port="x",
            frame_work={"name": "torch", "type": "multi"},
            fault_tolerant=True,
            trainer={"min-instance": 3, "max-instance": 2, "resources": {"limits": {"cpu": "x"}}},
            volumes=[{"name": "A"}],
        ),
    )
    assert {error.pointer for error in errors} == {
        "/metadata/name",
        "/spec/port",
        "/spec/frame_work/name",
        "/spec/trainer/max-instance",
        "/spec/trainer/resources/limits/cpu",
        "/spec/volumes/0/name",
    }


def test_too_large() -> None:
    large = TOLERANT | trainer(**{"max-instance": 100})
    assert [e.code for e in errors_of(KIND, a_manifest(**large), Limits(max_replicas=50))] == ["TooManyReplicas"]
    assert "PodTooLarge" in {e.code for e in errors_of(KIND, a_manifest(), Limits(max_rendered_pod_bytes=4500))}


def test_the_list_of_hosts_leaves_a_kibibyte_of_its_config_map_for_the_keys() -> None:
    def of_size(trainers: int) -> Manifest:
        return a_manifest("jj", **TOLERANT, **trainer(**{"max-instance": trainers}))

    # 5952 hosts, since there are a master and a pserver too, and 176 bytes for each are 1023 KiB.
    assert KIND.accept(of_size(5950), Limits(), GIVEN).manifest
    (error,) = errors_of(KIND, of_size(5951))
    assert (error.pointer, error.code) == ("/spec/trainer/max-instance", "HostsTooLarge")


@pytest.mark.parametrize("walltime", [90, "90"], ids=["number", "text"])
def test_walltime_is_a_number_or_a_text(walltime: int | str) -> None:
    stored = KIND.accept(a_manifest(annotations={"walltime": walltime}), Limits(), GIVEN).manifest
    assert stored["spec"]["annotations"]["walltime"] == 90


@pytest.mark.parametrize(
    "spec",
    [
        {"master": {"replicaSpec": {"kind": "ReplicaSet"}}},
        {"pserver": {"replicaSpec": {"spec": {}}, "index_succeed": True}},
        {"trainer": {"replicaSpec": {"spec": {}}, "index_succeed": True, "etcd-endpoint": "x", "passes": 50}},
        {"mountpath": "/x", "mountPath": "/x", "nfsmount": "y", "matrix": True},
        {"host_network": True, "port": 8080},
        {"volumes": None, "trainer": None, "master": {"liveness_probe": None}},
    ],
)
def test_manifests_that_upstream_accepts_are_accepted(spec: Manifest) -> None:
    stored = KIND.accept(a_manifest(**spec), Limits(), GIVEN).manifest
    text = str(stored)
    assert "replicaSpec" not in text
    assert "index_succeed" not in text


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SPEC_FIELDS = [
    "image", "port", "ports_num", "fault_tolerant", "local_job", "volumes", "VolumeMounts", "annotations", "master",
    "pserver", "trainer", "frame_work", "schedulerName", "passes",
]  # fmt: skip
ROLE_FIELDS = [
    "entrypoint", "min-instance", "max-instance", "resources", "envs", "tolerations", "node_selector",
    "liveness_probe", "grace_period_seconds", "pre_stop_cmd", "imagePullSecrets",
]  # fmt: skip


def check(manifest: Manifest) -> None:
    limits = Limits(max_replicas=50)
    try:
        stored = KIND.accept(manifest, limits, GIVEN).manifest
    except InvalidManifest:
        return
    assert KIND.accept(postable(stored), limits, GIVEN).manifest == stored
    assert not KIND.changes(stored, stored)
    plan = KIND.plan(KIND.read(stored), identity(stored), resumed=False, site=Site())
    assert list(objects_of(plan))
    assert reserved_names(plan)


@given(field=st.sampled_from(SPEC_FIELDS), value=values)
def test_any_value_of_a_field_is_accepted_or_refused(field: str, value: Any) -> None:
    check(a_manifest(**{"fault_tolerant": True, field: value}))


@given(
    role=st.sampled_from(["master", "pserver", "trainer"]),
    fields=st.dictionaries(st.sampled_from(ROLE_FIELDS), values, max_size=3),
)
def test_any_role_is_accepted_or_refused(role: str, fields: dict[str, Any]) -> None:
    check(a_manifest(**{"fault_tolerant": True, role: fields}))


def test_the_schema_says_what_the_default_0_of_a_number_means() -> None:
    role: dict[str, Any] = {"trainer": {}, "pserver": {}}
    manifest = {"apiVersion": "paddlepaddle.org/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "job"}}
    spec = KIND.accept({**manifest, "spec": role}, Limits(), GIVEN).manifest["spec"]
    schema = KIND.json_schema()
    whole, roles = schema["properties"]["spec"], schema["$defs"]
    for place, part in (
        (spec, whole),
        (spec["trainer"], roles["TrainerSpec"]),
        (spec["pserver"], roles["PserverSpec"]),
    ):
        for field, of_field in part["properties"].items():
            if of_field.get("default") == 0 and place.get(field):
                assert "0 means" in of_field["description"], field
