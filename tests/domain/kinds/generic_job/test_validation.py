"""Everything that a GenericJob may have wrong: where it is reported, and under which code."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.kinds.generic_job import GenericJobKind
from app.domain.kinds.job_kind import Limits
from app.domain.plan import Manifest
from tests.support.plans import GIVEN, errors_of

Change = Callable[[dict[str, Any]], Any]
KIND = GenericJobKind()


def a_manifest(**spec: Any) -> Manifest:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1"]}
    replicas = {"type": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": "job"},
        "spec": {"replicaSpecs": [replicas], **spec},
    }


def replica(**changes: Any) -> list[dict[str, Any]]:
    return [{**a_manifest()["spec"]["replicaSpecs"][0], **changes}]


def command(*texts: str) -> list[dict[str, Any]]:
    return replica(template={"spec": {"containers": [{"name": "main", "image": "i", "command": list(texts)}]}})


PORTS = [{"name": "http", "port": 80}]
REPLICA = "/spec/replicaSpecs/0"
TEXT = f"{REPLICA}/template/spec/containers/0/command/0"
BAD = {"name": "m", "imag": "x", "args": ["$(replicas[ps])"]}

WRONG = [
    ({"replicaSpecs": None}, "/spec/replicaSpecs", "Required"),
    ({"replicaSpecs": []}, "/spec/replicaSpecs", "TooShort"),
    ({"replicaSpecs": {}}, "/spec/replicaSpecs", "InvalidType"),
    ({"replicaSpecs": replica(replicas="2")}, f"{REPLICA}/replicas", "InvalidType"),
    ({"replicaSpecs": replica(replicas=True)}, f"{REPLICA}/replicas", "InvalidType"),
    ({"replicaSpecs": replica(replicas=-1)}, f"{REPLICA}/replicas", "OutOfRange"),
    ({"replicaSpecs": replica(replicas=2**31)}, f"{REPLICA}/replicas", "OutOfRange"),
    ({"replicaSpecs": replica(replicas=1_000_000)}, f"{REPLICA}/replicas", "TooManyReplicas"),
    ({"replicaSpecs": replica(replicas=0)}, "/spec/replicaSpecs", "NoReplicas"),
    ({"replicaSpecs": replica(type=None)}, f"{REPLICA}/type", "Required"),
    ({"replicaSpecs": replica(type="")}, f"{REPLICA}/type", "InvalidName"),
    ({"replicaSpecs": replica(type="Worker")}, f"{REPLICA}/type", "InvalidName"),
    ({"replicaSpecs": replica(type="a.b")}, f"{REPLICA}/type", "InvalidName"),
    ({"replicaSpecs": replica(type="w" * 58)}, f"{REPLICA}/type", "NameTooLong"),
    ({"replicaSpecs": replica() * 2}, "/spec/replicaSpecs/1/type", "Duplicate"),
    ({"replicaSpecs": replica(template=None)}, f"{REPLICA}/template", "Required"),
    ({"replicaSpecs": replica(template=[])}, f"{REPLICA}/template", "InvalidType"),
    (
        {"replicaSpecs": replica(restartPolicy={"policy": "Sometimes"})},
        f"{REPLICA}/restartPolicy/policy",
        "InvalidValue",
    ),
    ({"replicaSpecs": replica(restartPolicy="Sometimes")}, f"{REPLICA}/restartPolicy", "InvalidValue"),
    ({"replicaSpecs": replica(restartPolicy={"limit": -1})}, f"{REPLICA}/restartPolicy/limit", "OutOfRange"),
    ({"replicaSpecs": replica(replica=1)}, f"{REPLICA}/replica", "UnknownField"),
    ({"succesRules": []}, "/spec/succesRules", "UnknownField"),
    ({"successRules": [{"master": [0]}]}, "/spec/successRules/0/master", "UnknownType"),
    ({"successRules": [{"worker": [2]}]}, "/spec/successRules/0/worker/0", "UnknownRank"),
    ({"successRules": [{"worker": [0, 0]}]}, "/spec/successRules/0/worker/1", "Duplicate"),
    ({"successRules": [{"worker": []}]}, "/spec/successRules/0/worker", "EmptyRule"),
    ({"successRules": [{}]}, "/spec/successRules/0", "EmptyRule"),
    ({"successRules": [{"worker": ["one"]}]}, "/spec/successRules/0/worker/0", "InvalidType"),
    ({"failureRules": [{"worker": [-1]}]}, "/spec/failureRules/0/worker/0", "OutOfRange"),
    ({"failureRules": [{"replicas": {"worker": ["9"]}}]}, "/spec/failureRules/0/replicas/worker/0", "UnknownRank"),
    ({"failureRules": {"rules": [{"ranks": {"m": [0]}}]}}, "/spec/failureRules/rules/0/ranks/m", "UnknownType"),
    ({"cleanUpPolicy": "Some"}, "/spec/cleanUpPolicy", "InvalidValue"),
    ({"scheduler": {"t9kScheduler": {}}}, "/spec/scheduler/t9kScheduler/queue", "Required"),
    ({"scheduler": {"t9kScheduler": {"queue": None}}}, "/spec/scheduler/t9kScheduler/queue", "Required"),
    ({"scheduler": {"t9kScheduler": {"queue": ""}}}, "/spec/scheduler/t9kScheduler/queue", "TooShort"),
    ({"scheduler": {"t9kScheduler": {"queue": "a b"}}}, "/spec/scheduler/t9kScheduler/queue", "InvalidName"),
    (
        {"scheduler": {"t9kScheduler": {"queue": "q", "priority": 101}}},
        "/spec/scheduler/t9kScheduler/priority",
        "OutOfRange",
    ),
    ({"runMode": {"debug": {"enabled": True}, "pause": {"enabled": True}}}, "/spec/runMode", "Conflict"),
    ({"runMode": {"debug": {"enabled": "yes"}}}, "/spec/runMode/debug/enabled", "InvalidType"),
    ({"runMode": {"debug": {"enable": "yes"}}}, "/spec/runMode/debug/enable", "InvalidType"),
    ({"runMode": {"debug": {"enable": True, "enabled": False}}}, "/spec/runMode/debug/enable", "Conflict"),
    (
        {"runMode": {"debug": {"replicaSpecs": [{"type": "master"}]}}},
        "/spec/runMode/debug/replicaSpecs/0/type",
        "UnknownType",
    ),
    (
        {"runMode": {"pause": {"resumeSpecs": [{"type": "worker"}] * 2}}},
        "/spec/runMode/pause/resumeSpecs/1/type",
        "Duplicate",
    ),
    (
        {"runMode": {"pause": {"resumeSpecs": [{"type": "worker", "args": ["$(service.port[x])"]}]}}},
        "/spec/runMode/pause/resumeSpecs/0/args/0",
        "InvalidVariable",
    ),
    (
        {"runMode": {"debug": {"replicaSpecs": [{"type": "worker", "command": ["sh", "$(service.port[x])"]}]}}},
        "/spec/runMode/debug/replicaSpecs/0/command/1",
        "InvalidVariable",
    ),
    ({"service": {"ports": [{}]}}, "/spec/service/ports/0/port", "Required"),
    ({"service": {"ports": [{"port": 0}]}}, "/spec/service/ports/0/port", "OutOfRange"),
    ({"service": {"ports": [{"port": 65_536}]}}, "/spec/service/ports/0/port", "OutOfRange"),
    ({"service": {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}}, "/spec/service/ports/0/name", "Required"),
    ({"service": {"ports": [*PORTS, {"port": 2, "name": "http"}]}}, "/spec/service/ports/1/name", "Duplicate"),
    ({"service": {"ports": [*PORTS, {"port": 80, "name": "b"}]}}, "/spec/service/ports/1/port", "Duplicate"),
    ({"service": {"ports": [{"port": 1, "protocol": "ICMP"}]}}, "/spec/service/ports/0/protocol", "InvalidValue"),
    ({"service": {"ports": [{"port": 1, "targetPort": "A"}]}}, "/spec/service/ports/0/targetPort", "InvalidName"),
    ({"service": {"ports": [{"port": 1, "targetPort": 70_000}]}}, "/spec/service/ports/0/targetPort", "OutOfRange"),
    ({"service": {"ports": [{"port": 1, "targetPort": 1.5}]}}, "/spec/service/ports/0/targetPort", "InvalidType"),
    ({"service": {"ports": [{"port": 1, "nodePort": 30_000}]}}, "/spec/service/ports/0/nodePort", "InvalidValue"),
    ({"replicaSpecs": command("$(service.worker[0].host)")}, TEXT, "InvalidVariable"),
    ({"replicaSpecs": command("$(service.port[http])")}, TEXT, "InvalidVariable"),
    ({"replicaSpecs": command("$(replicas[ps])")}, TEXT, "InvalidVariable"),
    ({"service": {"ports": PORTS}, "replicaSpecs": command("$(service.worker[2].host)")}, TEXT, "InvalidVariable"),
    ({"service": {"ports": PORTS}, "replicaSpecs": command("$(service.ps[0].host)")}, TEXT, "InvalidVariable"),
    ({"service": {"ports": PORTS}, "replicaSpecs": command("$(service.port[grpc])")}, TEXT, "InvalidVariable"),
]


@pytest.mark.parametrize(("spec", "pointer", "code"), WRONG)
def test_one_error_at_its_place(spec: dict[str, Any], pointer: str, code: str) -> None:
    (error,) = errors_of(KIND, a_manifest(**spec))
    assert (error.pointer, error.code, bool(error.accepted)) == (pointer, code, True)


METADATA = [
    ({}, "/metadata/name", "Required"),
    ({"name": 7}, "/metadata/name", "InvalidType"),
    ({"name": "Job"}, "/metadata/name", "InvalidName"),
    ({"name": "j", "namespace": "A"}, "/metadata/namespace", "InvalidName"),
    ({"name": "j", "lables": {}}, "/metadata/lables", "UnknownField"),
    ({"name": "j", "labels": []}, "/metadata/labels", "InvalidType"),
    ({"name": "j", "labels": {"a b": "c"}}, "/metadata/labels/a b", "InvalidLabel"),
    ({"name": "j", "labels": {"a/b": "c d"}}, "/metadata/labels/a~1b", "InvalidLabel"),
    ({"name": "j", "labels": {"a": 1}}, "/metadata/labels/a", "InvalidType"),
    ({"name": "j", "labels": {"jobgate.dev/task": "x"}}, "/metadata/labels/jobgate.dev~1task", "Reserved"),
    ({"name": "j", "annotations": {"a": "x" * 262_144}}, "/metadata/annotations", "TooLong"),
    (
        {"name": "j", "annotations": {"jobgate.dev/ttl": "1"}},
        "/metadata/annotations/jobgate.dev~1ttl",
        "UnknownField",
    ),
    *[
        (
            {"name": "j", "annotations": {"jobgate.dev/active-deadline-seconds": text}},
            "/metadata/annotations/jobgate.dev~1active-deadline-seconds",
            "InvalidAnnotation",
        )
        for text in ("-1", "1.5", "", "1h", "9" * 40, "٣")
    ],
]


@pytest.mark.parametrize(("metadata", "pointer", "code"), METADATA)
def test_metadata(metadata: dict[str, Any], pointer: str, code: str) -> None:
    errors = errors_of(KIND, {**a_manifest(), "metadata": metadata})
    assert [(error.pointer, error.code) for error in errors] == [(pointer, code)]
    assert errors[0].accepted


def test_misspelt_fields_are_named_with_the_one_that_was_meant() -> None:
    manifest = a_manifest(runMod={}, replicaSpecs=replica(template_={}, restartpolicy={"policy": "Never"}))
    found = {error.pointer: error.detail for error in errors_of(KIND, {**manifest, "specs": {}})}
    assert found == {
        "/specs": 'unknown field "specs"; did you mean "spec"?',
        "/spec/runMod": 'unknown field "runMod"; did you mean "runMode"?',
        f"{REPLICA}/template_": 'unknown field "template_"; did you mean "template"?',
        f"{REPLICA}/restartpolicy": 'unknown field "restartpolicy"; did you mean "restartPolicy"?',
    }


def test_misspelt_field_inside_a_list_inside_an_optional_object() -> None:
    (error,) = errors_of(KIND, a_manifest(service={"ports": [{"port": 1, "targetport": 2}]}))
    assert error.pointer == "/spec/service/ports/0/targetport"
    assert 'did you mean "targetPort"?' in error.detail


def test_the_template_is_checked_with_everything_else_at_once() -> None:
    bad = replica(template={"spec": {"containers": [{"name": "main", "image": "i", "commands": ["x"]}]}})
    errors = errors_of(KIND, a_manifest(replicaSpecs=bad, successRules=[{"ps": [0]}]))
    pointers = {error.pointer for error in errors}
    assert pointers == {"/spec/successRules/0/ps", f"{REPLICA}/template/spec/containers/0/commands"}


def test_a_misspelt_field_hides_no_other_error() -> None:
    spec = {
        "successRules": [{"absent": [0]}],
        "replicaSpecs": [
            {"type": "w", "replica": 2, "template": {"spec": {"containers": [{"name": "m", "imag": "x"}]}}}
        ],
    }
    assert {(error.pointer, error.code) for error in errors_of(KIND, {**a_manifest(), "spec": spec})} >= {
        ("/spec/replicaSpecs/0/replica", "UnknownField"),
        ("/spec/replicaSpecs/0/template/spec/containers/0/imag", "UnknownField"),
        ("/spec/successRules/0/absent", "UnknownType"),
    }


def test_a_wrong_type_does_not_hide_what_is_wrong_with_the_templates() -> None:
    spec = {"replicaSpecs": [{"type": 7, "template": {"spec": {"containers": [{"name": "m", "imag": "x"}]}}}]}
    assert {(error.pointer, error.code) for error in errors_of(KIND, {**a_manifest(), "spec": spec})} >= {
        ("/spec/replicaSpecs/0/type", "InvalidType"),
        ("/spec/replicaSpecs/0/template/spec/containers/0/imag", "UnknownField"),
    }


def test_a_wrong_shape_hides_no_other_error() -> None:
    spec = {
        "cleanUpPolicy": "Sometimes",
        "successRules": [{"absent": [0]}],
        "failureRules": [{"w": ["first"]}],
        "scheduler": {"t9kScheduler": {"priority": 101}},
        "runMode": {"debug": {"enabled": "yes", "replicaSpecs": [{"type": "absent"}]}},
        "replicaSpecs": [
            {"type": "w", "restartPolicy": {"limit": -1}, "template": {"spec": {"containers": [BAD]}}},
            {"type": "w", "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}},
        ],
    }
    assert {(error.pointer, error.code) for error in errors_of(KIND, {**a_manifest(), "spec": spec})} >= {
        ("/spec/cleanUpPolicy", "InvalidValue"),
        ("/spec/successRules/0/absent", "UnknownType"),
        ("/spec/failureRules/0/w/0", "InvalidType"),
        ("/spec/scheduler/t9kScheduler/queue", "Required"),
        ("/spec/scheduler/t9kScheduler/priority", "OutOfRange"),
        ("/spec/runMode/debug/enabled", "InvalidType"),
        ("/spec/runMode/debug/replicaSpecs/0/type", "UnknownType"),
        ("/spec/replicaSpecs/0/restartPolicy/limit", "OutOfRange"),
        ("/spec/replicaSpecs/0/template/spec/containers/0/imag", "UnknownField"),
        ("/spec/replicaSpecs/0/template/spec/containers/0/args/0", "InvalidVariable"),
        ("/spec/replicaSpecs/1/type", "Duplicate"),
    }


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"replicaSpecs": replica(replicas="4"), "successRules": [{"worker": [3]}]}, f"{REPLICA}/replicas"),
        (
            {"service": {"ports": [{"port": 0, "name": "http"}]}, "replicaSpecs": command("$(service.port[http])")},
            "/spec/service/ports/0/port",
        ),
    ],
)
def test_consequences_of_a_wrong_shape_are_not_reported(spec: dict[str, Any], pointer: str) -> None:
    assert [error.pointer for error in errors_of(KIND, a_manifest(**spec))] == [pointer]


@pytest.mark.parametrize("spec", [None, [], "spec", 7])
def test_a_spec_of_another_type_is_refused(spec: Any) -> None:
    (error,) = errors_of(KIND, {**a_manifest(), "spec": spec})
    assert (error.pointer, error.code) == ("/spec", "InvalidType")


def test_the_answer_to_twenty_thousand_unknown_keys_is_small() -> None:
    errors = errors_of(KIND, a_manifest(**{f"key{i}": i for i in range(20_000)}))
    assert len(errors) == 20
    assert "19981 more errors" in errors[-1].detail


@pytest.mark.parametrize("ports", [None, [], PORTS])
def test_the_name_of_the_last_replica_must_fit(ports: list[dict[str, Any]] | None) -> None:
    fits, over = "a" * (63 - len("-worker-9")), "a" * (64 - len("-worker-9"))
    spec = {"service": {"ports": ports}, "replicaSpecs": replica(replicas=10)}
    manifest = a_manifest(**spec)
    assert KIND.accept({**manifest, "metadata": {"name": fits}}, Limits(), GIVEN).manifest
    (error,) = errors_of(KIND, {**manifest, "metadata": {"name": over}})
    assert (error.pointer, error.code) == (f"{REPLICA}/type", "NameTooLong")
    longer = a_manifest(service={"ports": ports}, replicaSpecs=replica(replicas=11))
    assert errors_of(KIND, {**longer, "metadata": {"name": fits}})


@pytest.mark.parametrize("name", ["a.b", "1job"])
def test_only_a_service_needs_a_name_of_letters_first_and_no_dots(name: str) -> None:
    metadata = {"name": name}
    assert KIND.accept({**a_manifest(), "metadata": metadata}, Limits(), GIVEN).manifest
    two = [*replica(), *replica(type="ps")]
    (error,) = errors_of(KIND, {**a_manifest(service={"ports": PORTS}, replicaSpecs=two), "metadata": metadata})
    assert (error.pointer, error.code) == ("/metadata/name", "InvalidName")
    assert error.accepted == "a name that begins with a letter and has no dots"


def test_the_pod_must_not_be_too_large() -> None:
    manifest = a_manifest(replicaSpecs=command("x" * 50_000))
    assert KIND.accept(manifest, Limits(max_rendered_pod_bytes=60_000), GIVEN).manifest
    (error,) = errors_of(KIND, manifest, Limits(max_rendered_pod_bytes=50_000))
    assert (error.pointer, error.code) == (f"{REPLICA}/template", "PodTooLarge")


def test_the_pod_of_a_resumed_job_must_not_be_too_large() -> None:
    resumed = {"pause": {"resumeSpecs": [{"type": "worker", "args": ["x" * 50_000]}]}}
    (error,) = errors_of(KIND, a_manifest(runMode=resumed), Limits(max_rendered_pod_bytes=50_000))
    assert (error.pointer, error.code) == (f"{REPLICA}/template", "PodTooLarge")


@pytest.mark.parametrize(("replicas", "code"), [(0, "NoReplicas"), (1_000_000, "TooManyReplicas")])
def test_a_wrong_number_of_replicas_does_not_hide_the_size_of_the_pod(replicas: int, code: str) -> None:
    spec = [{**item, "replicas": replicas} for item in command("x" * 50_000)]
    found = errors_of(KIND, a_manifest(replicaSpecs=spec), Limits(max_rendered_pod_bytes=50_000))
    assert [error.code for error in found] == [code, "PodTooLarge"]


def test_the_size_of_a_pod_includes_the_values_of_variables() -> None:
    manifest = a_manifest(service={"ports": PORTS}, replicaSpecs=command("$(service.worker[0].host)" * 1000))
    manifest["metadata"]["name"] = "a" * 50
    assert errors_of(KIND, manifest, Limits(max_rendered_pod_bytes=50_000))[0].code == "PodTooLarge"


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"replicaSpecs": replica(replicas=0) * 257}, "/spec/replicaSpecs"),
        ({"successRules": [{"worker": [0]}] * 10_001}, "/spec/successRules"),
        ({"failureRules": [{"worker": [0]}] * 10_001}, "/spec/failureRules"),
        ({"service": {"ports": PORTS * 257}}, "/spec/service/ports"),
    ],
)
def test_long_lists_are_refused(spec: dict[str, Any], pointer: str) -> None:
    assert [(error.pointer, error.code) for error in errors_of(KIND, a_manifest(**spec))] == [(pointer, "TooMany")]


def test_a_template_cannot_have_fields_of_jobgate() -> None:
    template = {**replica()[0]["template"], "metadata": {"labels": {"jobgate.dev/task": "x"}}}
    (error,) = errors_of(KIND, a_manifest(replicaSpecs=replica(template=template)))
    assert error.pointer.startswith(f"{REPLICA}/template/metadata/labels")


def test_what_a_cluster_exports_is_accepted() -> None:
    manifest = a_manifest()
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1", "managedFields": [], "creationTimestamp": None}
    manifest["metadata"] |= {"clusterName": "", "initializers": None}  # of Kubernetes 1.16 and earlier
    manifest["status"] = {"phase": "Running"}
    accepted = KIND.accept(manifest, Limits(), GIVEN).manifest
    assert accepted["metadata"] == {"name": "job"}
    assert "status" not in accepted
