"""Which nodes Kueue assigns to each pod of a pod set."""

from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.topology import TopologyAssignment, keep_places, topology_request

Slice = dict[str, Any]
EQUAL: Slice = {
    "domainCount": 2,
    "podCounts": {"universal": 2},
    "valuesPerLevel": [{"universal": "r1"}, {"individual": {"prefix": "n", "roots": ["1", "2"], "suffix": ".x"}}],
}
DIFFERENT: Slice = {
    "domainCount": 2,
    "podCounts": {"individual": [1, 3]},
    "valuesPerLevel": [{"individual": {"roots": ["r2", "r3"]}}, {"individual": {"roots": ["a", "b"]}}],
}


def an_assignment(*slices: Slice) -> TopologyAssignment:
    """Two levels, as a Workload has them."""
    return msgspec.convert({"levels": ["rack", "host"], "slices": slices}, TopologyAssignment)


@pytest.mark.parametrize(
    ("slices", "domains"),
    [
        ([EQUAL], ["r1 n1.x", "r1 n1.x", "r1 n2.x", "r1 n2.x"]),
        ([DIFFERENT], ["r2 a", "r3 b", "r3 b", "r3 b"]),
        ([DIFFERENT, EQUAL], ["r2 a", "r3 b", "r3 b", "r3 b", "r1 n1.x", "r1 n1.x", "r1 n2.x", "r1 n2.x"]),
    ],
)
def test_pods_get_domains_in_their_order(slices: list[Slice], domains: list[str]) -> None:
    found = an_assignment(*slices)
    assert [" ".join(found.domain_of(index).values()) for index in range(found.size)] == domains
    assert list(found.domain_of(0)) == ["rack", "host"]
    assert found.domain_of(len(domains)) == found.domain_of(0)


def test_an_assignment_without_domains_has_no_labels() -> None:
    assert an_assignment().domain_of(3) == {}
    assert msgspec.json.decode(msgspec.json.encode(an_assignment(EQUAL)), type=TopologyAssignment) == an_assignment(
        EQUAL
    )


@pytest.mark.parametrize(
    ("changes", "count", "is_for"),
    [
        ({}, 4, True),
        ({}, 9, True),
        ({}, 3, False),
        ({"domainCount": 3}, 9, False),
        ({"domainCount": -1}, 9, False),
        ({"podCounts": {"individual": [1]}}, 9, False),
        ({"podCounts": {"individual": [1, 0]}}, 9, False),
        ({"podCounts": {"individual": [5, -1]}}, 9, False),
        ({"podCounts": {"universal": -1}}, 9, False),
        # It is read before memory is used for each domain.
        ({"podCounts": {"universal": 0}, "domainCount": 2**31, "valuesPerLevel": [{"universal": "r"}] * 2}, 9, False),
        ({"podCounts": {"universal": 1}, "domainCount": 2**31, "valuesPerLevel": [{"universal": "r"}] * 2}, 9, False),
        ({"podCounts": {}}, 9, False),
        ({"valuesPerLevel": [{"universal": "r1"}]}, 9, False),
        ({"valuesPerLevel": [{"universal": "r1"}, {}]}, 9, False),
        ({"valuesPerLevel": [{"universal": "r1"}, {"individual": {"roots": ["a"]}}]}, 9, False),
    ],
)
def test_an_assignment_that_contradicts_itself_is_for_no_pods(changes: Slice, count: int, *, is_for: bool) -> None:
    assert an_assignment(EQUAL | changes).is_for(count) is is_for


def nodes(*names: str) -> TopologyAssignment:
    """One level, and a domain for each pod."""
    roots = {"individual": {"roots": names}}
    part = {"domainCount": len(names), "podCounts": {"universal": 1}, "valuesPerLevel": [roots]}
    return msgspec.convert({"levels": ["host"], "slices": [part]}, TopologyAssignment)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("ab", "ab", "ab"),
        ("ba", "ab", "ba"),
        # a is lost, and Kueue sorts by name.
        ("ab", "bc", "cb"),
        ("aabb", "bbcc", "ccbb"),
        ("abab", "abbc", "abcb"),
        ("abc", "ab", "ab"),
        ("ab", "abc", "abc"),
        ("", "ab", "ab"),
    ],
)
def test_pods_keep_the_domains_that_are_left(before: str, after: str, wanted: str) -> None:
    found = keep_places(nodes(*before), nodes(*after))
    assert found is not None
    assert "".join(name for (name,) in found.domains()) == wanted
    assert found.size == len(wanted)
    assert keep_places(found, nodes(*after)) == found


def test_a_topology_with_other_levels_replaces_the_former_one() -> None:
    assert keep_places(nodes("a"), an_assignment(EQUAL)) == an_assignment(EQUAL)


def test_a_topology_replaces_one_that_contradicts_itself() -> None:
    before = an_assignment(EQUAL | {"domainCount": 3})
    assert keep_places(before, an_assignment(EQUAL)) == an_assignment(EQUAL)
    assert keep_places(None, nodes("a")) == nodes("a")
    assert keep_places(nodes("a"), None) is None


@pytest.mark.parametrize(
    ("annotations", "request_"),
    [
        (None, None),
        ({"other": "x"}, None),
        ({"kueue.x-k8s.io/podset-required-topology": "rack"}, {"required": "rack"}),
        ({"kueue.x-k8s.io/podset-preferred-topology": "rack"}, {"preferred": "rack"}),
        ({"kueue.x-k8s.io/podset-unconstrained-topology": "true"}, {"unconstrained": True}),
        (
            {
                "kueue.x-k8s.io/podset-required-topology": "block",
                "kueue.x-k8s.io/podset-slice-required-topology": "rack",
                "kueue.x-k8s.io/podset-slice-size": "4",
            },
            {"required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4},
        ),
        (
            {
                "kueue.x-k8s.io/podset-slice-required-topology": "rack",
                "kueue.x-k8s.io/podset-slice-size": "2",
            },
            {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2},
        ),
    ],
)
def test_an_annotation_requests_a_topology(annotations: dict[str, str] | None, request_: dict[str, Any] | None) -> None:
    assert topology_request({"metadata": {"annotations": annotations}, "spec": {}}) == request_
