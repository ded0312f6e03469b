"""Decoding never fails, and says what the bytes say."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.k8s.codec import EVENT, NODE, OBJECT, POD, decode_page, load_json
from app.k8s.errors import BrokenAnswer
from app.k8s.text import clean_json, clean_text

FULL_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a-0",
        "namespace": "ns",
        "uid": "u1",
        "resourceVersion": "17",
        "labels": {"l": "v"},
        "annotations": {"a": "w"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u0", "controller": True},
        ],
        "finalizers": ["jobgate.dev/evidence"],
        "creationTimestamp": "2026-11-21T02:33:25Z",
        "deletionTimestamp": "2026-11-21T02:34:25Z",
        "deletionGracePeriodSeconds": 30,
        "managedFields": [{"manager": "curl"}],
    },
    "spec": {
        "nodeName": "n1",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "initContainers": [{"name": "i", "restartPolicy": "Always", "image": "x"}],
        "containers": [{"name": "c", "image": "x"}],
    },
    "status": {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "m",
        "podIP": "10.0.0.1",
        "hostIP": "10.0.0.2",
        "startTime": "2026-11-21T02:33:26Z",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "r", "message": "m", "lastTransitionTime": None},
        ],
        "containerStatuses": [
            {
                "name": "c",
                "ready": False,
                "started": False,
                "restartCount": 2,
                "image": "x",
                "imageID": "y",
                "containerID": "containerd://1",
                "state": {
                    "terminated": {
                        "exitCode": 137,
                        "signal": 9,
                        "reason": "OOMKilled",
                        "message": "big",
                        "startedAt": "2026-11-21T02:33:27Z",
                        "finishedAt": "2026-11-21T02:33:28.5Z",
                    }
                },
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            }
        ],
    },
}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_all_fields_of_a_pod_are_decoded() -> None:
    pod = POD.decode(encoded(FULL_POD))
    assert (pod.metadata.name, pod.metadata.uid, pod.metadata.version) == ("a-0", "u1", 17)
    assert pod.metadata.deletion_grace_period_seconds == 30
    assert pod.metadata.owner_references[0].controller
    assert pod.metadata.creation_timestamp == datetime(2026, 11, 21, 2, 33, 25, tzinfo=UTC)
    assert (pod.spec.node_name, pod.spec.restart_policy) == ("n1", "Never")
    assert [c.name for c in (*pod.spec.init_containers, *pod.spec.containers)] == ["i", "c"]
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert (pod.status.pod_ip, pod.status.host_ip, pod.status.reason) == ("10.0.0.1", "10.0.0.2", "Evicted")
    assert pod.status.conditions[0].status == "False"
    status = pod.status.container_statuses[0]
    assert (status.restart_count, status.container_id, status.started) == (2, "containerd://1", False)
    assert status.state.terminated is not None
    assert (status.state.terminated.exit_code, status.state.terminated.signal) == (137, 9)
    assert status.state.terminated.finished_at == datetime(2026, 11, 21, 2, 33, 28, 500_000, tzinfo=UTC)
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 1


def test_an_empty_object_decodes_to_a_pod_with_defaults() -> None:
    pod = POD.decode(b"{}")
    assert (pod.metadata.name, pod.metadata.version, pod.status.phase) == ("", 0, "")
    assert pod.metadata.creation_timestamp is None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (rb'{"status":{"message":"a\u0000b"}}', "a�b"),
        (rb'{"status":{"message":"a\\u0000b"}}', r"a\u0000b"),
        (rb'{"status":{"message":"a\\\u0000b"}}', "a\\�b"),
        (b'{"status":{"message":"a\xff\xfeb"}}', "a��b"),
        (rb'{"status":{"message":"a\ud800b"}}', "a�b"),
        (rb'{"status":{"message":"\ud83d\ude00"}}', "😀"),
        (b'{"status":{"message":"a\x00b"}}', "a�b"),
    ],
)
def test_strings_are_cleaned(raw: bytes, message: str) -> None:
    assert POD.decode(raw).status.message == message
    assert OBJECT.decode(raw).raw["status"]["message"] == message


@pytest.mark.parametrize(
    ("odd", "path", "expected"),
    [
        ({"status": {"podIP": 7, "phase": "Running"}}, "phase", "Running"),
        ({"status": {"conditions": None, "phase": "Running"}}, "phase", "Running"),
        ({"status": {"conditions": [{"type": []}, {"type": "Ready"}], "phase": "Running"}}, "phase", "Running"),
        ({"status": {"startTime": "yesterday", "phase": "Running"}}, "phase", "Running"),
        ({"status": {"startTime": "2026-11-21T02:33:26", "phase": "Running"}}, "start_time", None),
        ({"status": {"phase": {"a": 1}, "podIP": "10.0.0.1"}}, "pod_ip", "10.0.0.1"),
        ({"status": [], "spec": 3}, "phase", ""),
        ({"metadata": {"labels": {"a": 1, "b": "x"}}, "status": {"phase": "Failed"}}, "phase", "Failed"),
        ({"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": "x"}}}], "phase": "F"}}, "phase", "F"),
    ],
)
def test_a_malformed_field_is_dropped_alone(odd: Any, path: str, expected: object) -> None:
    assert getattr(POD.decode(encoded(odd)).status, path) == expected


def test_metadata_is_kept_if_everything_else_is_malformed() -> None:
    odd = {
        "metadata": {"uid": "u", "resourceVersion": "5"},
        "spec": {"containers": [{"name": []} for _ in range(200)]},
    }
    assert POD.decode(encoded(odd)).metadata.version == 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["metadata", "spec", "status", "labels", "conditions", "containerStatuses", "state", "uid"])
ODD = st.recursive(JSON, lambda inner: st.dictionaries(FIELDS, inner, max_size=4) | st.lists(inner, max_size=2))


@given(st.dictionaries(FIELDS, ODD, max_size=4))
def test_every_json_object_decodes_to_a_pod(value: dict[str, Any]) -> None:
    pod = POD.decode(encoded(value))
    assert isinstance(pod.metadata.name, str)
    assert "\0" not in pod.metadata.uid


@given(st.text(alphabet=st.characters(codec=None)) | st.binary())
def test_clean_text_can_be_stored(text: str | bytes) -> None:
    cleaned = clean_text(text)
    assert b"\0" not in cleaned.encode()
    assert clean_text(cleaned) == cleaned


@given(st.text())
def test_cleaning_json_changes_only_nul(text: str) -> None:
    assert json.loads(clean_json(json.dumps(text).encode())) == text.replace("\0", "�")


@pytest.mark.parametrize("raw", [b"", b"<html>", b'{"a":', b"[1]", b"7", b"null"])
def test_bytes_that_are_not_a_json_object_are_a_broken_answer(raw: bytes) -> None:
    with pytest.raises(BrokenAnswer):
        POD.decode(raw)


def test_deep_nesting_is_a_broken_answer() -> None:
    with pytest.raises(BrokenAnswer):
        load_json(b"[" * 100_000 + b"]" * 100_000)


def test_a_malformed_item_does_not_affect_the_other_items_of_a_page() -> None:
    page = decode_page(
        b'{"metadata":{"resourceVersion":"9","continue":"t"},"items":[{"metadata":{"uid":"a\xff"}},'
        b'{"metadata":{"uid":"b"}}]}',
        POD,
    )
    assert [pod.metadata.uid for pod in page.items] == ["a�", "b"]
    assert (page.resource_version, page.continue_token) == ("9", "t")
    assert not list(decode_page(b'{"metadata":{},"items":null}', POD).items)


def test_a_nodes_readiness() -> None:
    def node(status: str) -> bytes:
        return encoded(
            {"status": {"conditions": [{"type": "Ready", "status": status}]}, "spec": {"unschedulable": True}}
        )

    assert NODE.decode(node("True")).ready
    assert not NODE.decode(node("Unknown")).ready
    assert NODE.decode(node("True")).spec.unschedulable


def test_events_of_both_event_apis_are_decoded() -> None:
    old = EVENT.decode(
        b'{"involvedObject":{"uid":"p"},"count":3,"lastTimestamp":"2026-11-21T02:33:25Z","source":{"component":"kubelet"},'
        b'"eventTime":null}'
    )
    new = EVENT.decode(
        b'{"eventTime":"2026-11-21T02:33:25.123456Z","lastTimestamp":null,"reportingComponent":"default-scheduler",'
        b'"series":{"count":4,"lastObservedTime":"2026-11-21T02:40:25.123456Z"}}'
    )
    assert (old.times, old.component, old.involved_object.uid) == (3, "kubelet", "p")
    assert old.last_seen == datetime(2026, 11, 21, 2, 33, 25, tzinfo=UTC)
    assert (new.times, new.component) == (4, "default-scheduler")
    assert new.last_seen == datetime(2026, 11, 21, 2, 40, 25, 123456, tzinfo=UTC)
