"""Kubernetes' protobuf, read as the JSON that the same client would have sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.formats.protobuf import ProtobufError, decode
from tests.support.clusters.protobuf import body, field, varint


def read(kind: str, raw: bytes) -> dict[str, Any]:
    found = decode(body(kind, raw))
    assert (found.pop("apiVersion"), found.pop("kind")) == ("v1", kind)
    return found


ZERO_METADATA = b"".join(field(number, "") for number in range(1, 7)) + field(7, 0) + field(8, b"")
TIME = field(1, 1795000000) + field(2, 123456789)


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("Secret", b"", {}),
        ("Secret", field(1, field(1, "s") + ZERO_METADATA[2:]), {"metadata": {"name": "s"}}),
        ("Secret", field(3, "Opaque"), {"type": "Opaque"}),
        ("Secret", field(2, field(1, "a") + field(2, b"\xff")), {"data": {"a": "/w=="}}),
        ("Secret", field(2, field(1, "a") + field(2, "")) + field(2, field(1, "b")), {"data": {"a": "", "b": ""}}),
        # A pointer's zero was set; another zero means that nothing was.
        ("Secret", field(5, 0), {"immutable": False}),
        ("DeleteOptions", field(1, 0) + field(5, "All"), {"gracePeriodSeconds": 0, "dryRun": ["All"]}),
        ("Probe", field(2, 0) + field(3, 5), {"timeoutSeconds": 5}),
        ("StatefulSet", field(2, field(1, 0)), {"spec": {"replicas": 0}}),
        # Embedded Go structs are no objects of their own.
        ("Volume", field(1, "v") + field(2, field(2, b"")), {"name": "v", "emptyDir": {}}),
        ("Probe", field(1, field(2, field(1, "/") + field(2, field(1, 0) + field(2, 80)))), {
            "httpGet": {"path": "/", "port": 80}
        }),
        ("HTTPGetAction", field(2, field(1, 1) + field(2, 0) + field(3, "web")), {"port": "web"}),
        ("ResourceRequirements", field(1, field(1, "cpu") + field(2, field(1, "500m"))), {"limits": {"cpu": "500m"}}),
        ("PodSecurityContext", field(4, 1) + field(4, -1), {"supplementalGroups": [1, -1]}),
        ("PodSecurityContext", field(4, varint(1) + varint(2)), {"supplementalGroups": [1, 2]}),
        ("ObjectMeta", field(8, field(1, 1795000000)), {"creationTimestamp": "2026-11-18T11:06:40Z"}),
        ("LeaseSpec", field(4, TIME), {"renewTime": "2026-11-18T11:06:40.123456Z"}),
        ("ControllerRevision", field(2, field(1, '{"a": [1]}')), {"data": {"a": [1]}}),
        ("ConfigMap", field(99, "from a later version") + field(98, 7), {}),
    ],
)  # fmt: skip
def test_messages(kind: str, raw: bytes, expected: dict[str, Any]) -> None:
    assert read(kind, raw) == expected


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "does not begin"),
        (b'{"kind": "Pod"}', "does not begin"),
        (body("Nosuch", b""), "no kind 'Nosuch'"),
        (body("Secret", field(3, "Opaque"))[:-8], "ends inside a field"),
        (body("Secret", field(3, 7)), "a number stands where bytes are expected"),
        (body("DeleteOptions", field(1, "x")), "bytes stand where a number is expected"),
        (body("Secret", b"\x0b"), "wire type 3"),
        (body("Secret", b"\xff" * 20), "no number"),
    ],
)
def test_an_invalid_message_is_refused_with_the_reason(raw: bytes, why: str) -> None:
    with pytest.raises(ProtobufError, match=why):
        decode(raw)


@given(st.sampled_from(["Pod", "Secret", "DeleteOptions", "ControllerRevision"]), st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(kind: str, raw: bytes) -> None:
    try:
        read(kind, raw)
    except ValueError:
        return
