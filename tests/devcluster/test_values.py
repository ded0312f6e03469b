"""The pure parts of the embedded cluster: selectors, quantities, patches, field checks and fitting."""

from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.controllers import fit
from devcluster.errors import StatusError
from devcluster.formats import patches, quantity, schema
from devcluster.formats.numbers import whole_number
from devcluster.formats.selectors import Selector, parse_labels
from devcluster.server import queries

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("xyz", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=10,
)
DOCUMENTS = st.dictionaries(st.sampled_from("pqr"), JSON, max_size=3)


def matches(selector: str, labels: dict[str, str]) -> bool:
    return Selector(parse_labels(selector)).matches({"metadata": {"labels": labels}})


@given(LABELS)
def test_each_requirement_has_its_opposite(labels: dict[str, str]) -> None:
    for one, other in (("a=1", "a!=1"), ("a in (1,2)", "a notin (1,2)"), ("a", "!a")):
        assert matches(one, labels) != matches(other, labels)


@given(LABELS)
def test_a_comma_means_and(labels: dict[str, str]) -> None:
    assert matches("a=1, b in (1, 2), !c", labels) == (
        matches("a=1", labels) and matches("b in (1,2)", labels) and matches("!c", labels)
    )


@pytest.mark.parametrize("selector", ["a in", "a in (", "a in 1", ",a", "a,,b", "!", "a=b=c", "a;b", "a = 'x'"])
def test_bad_selectors(selector: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(selector)
    assert refused.value.code == 400


NUMBERS = [
    ("0", 0),
    ("007", 7),
    (str(2**63 - 1), 2**63 - 1),
    (str(2**63), None),
    ("9" * 5000, None),
    ("", None),
    ("-1", None),
    ("1_000", None),
    ("\N{SUPERSCRIPT TWO}", None),
    ("\N{ARABIC-INDIC DIGIT ONE}", None),
]


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_whole_numbers(text: str, value: int | None) -> None:
    assert whole_number(text) == value


@pytest.mark.parametrize("text", ["-1", "\N{SUPERSCRIPT TWO}", "9" * 5000])
def test_a_version_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        queries.version({"resourceVersion": text})
    assert refused.value.code == 400


@pytest.mark.parametrize(("selector", "is_selected"), [("rank>4", True), ("rank<5", False)])
def test_selectors_compare_numbers(selector: str, is_selected: bool) -> None:  # noqa: FBT001
    assert matches(selector, {"rank": "5"}) is is_selected
    assert not matches(selector, {"rank": "five"})


QUANTITIES = [("1", 1), ("500m", "0.5"), ("2Gi", 2**31), ("1k", 1000), ("1.5", "1.5"), ("1e3", 1000), ("100n", "1e-7")]


@pytest.mark.parametrize(("text", "value"), QUANTITIES)
def test_quantities(text: str, value: Any) -> None:
    assert quantity.parse(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "x", "1x", "Gi", "nan", "inf", "1 Gi", "--1", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(text)


@given(st.integers(0, 10**6))
def test_rendered_quantities_read_back(thousandths: int) -> None:
    value = Decimal(thousandths) / 1000
    assert quantity.parse(quantity.render(value)) == value


def test_pods_are_charged_for_their_hungriest_moment() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    sidecar = container("1", restartPolicy="Always")
    spec = {"containers": [container("1"), container("2")], "initContainers": [sidecar, container("5")]}
    assert quantity.pod_amounts({"spec": spec}) == {"cpu": Decimal(6)}
    spec["initContainers"] = [sidecar, container("1")]
    assert quantity.pod_amounts({"spec": spec}) == {"cpu": Decimal(4)}


# The examples of RFC 7386, appendix A, where the target is an object.
MERGES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), MERGES)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    assert patches.apply(patches.MERGE, target, patch, "ConfigMap") == expected


@given(DOCUMENTS, DOCUMENTS)
def test_merging_twice_is_merging_once(target: dict[str, Any], patch: dict[str, Any]) -> None:
    kept = deepcopy(patch)
    once = patches.apply(patches.MERGE, deepcopy(target), patch, "ConfigMap")
    assert patches.apply(patches.MERGE, deepcopy(once), patch, "ConfigMap") == once
    assert patch == kept


@given(DOCUMENTS, DOCUMENTS)
def test_json_patch_can_turn_anything_into_anything(target: dict[str, Any], wanted: dict[str, Any]) -> None:
    steps = [{"op": "remove", "path": f"/{key}"} for key in target]
    steps += [{"op": "add", "path": f"/{key}", "value": value} for key, value in wanted.items()]
    assert patches.apply(patches.JSON, deepcopy(target), steps, "ConfigMap") == wanted


def test_strategic_patch_of_lists() -> None:
    target = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}
    patch = {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}, {"name": "c"}]}}
    patched = patches.apply(patches.STRATEGIC, target, patch, "Pod")
    assert patched == {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]}}


def test_strategic_patch_of_finalizers() -> None:
    target = {"metadata": {"finalizers": ["a/b", "c/d"]}}
    more = patches.apply(patches.STRATEGIC, deepcopy(target), {"metadata": {"finalizers": ["e/f", "a/b"]}}, "Pod")
    assert more["metadata"]["finalizers"] == ["a/b", "c/d", "e/f"]
    fewer = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}}
    assert patches.apply(patches.STRATEGIC, target, fewer, "Pod")["metadata"]["finalizers"] == ["c/d"]


def test_unknown_fields_are_found_wherever_they_are() -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "probe": 1}], "volume": []}, "x": 1}
    assert schema.clean(body, "Pod", "v1") == ["spec.containers[0].probe", "spec.volume", "x"]
    assert body == {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}


NODE = {
    "metadata": {"name": "n", "labels": {"zone": "a", "rank": "5"}},
    "spec": {},
    "status": {"allocatable": {"cpu": "1", "pods": "1"}},
}
AFFINITIES = [
    ({"key": "zone", "operator": "In", "values": ["a"]}, True),
    ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
    ({"key": "zone", "operator": "Exists"}, True),
    ({"key": "zone", "operator": "DoesNotExist"}, False),
    ({"key": "rank", "operator": "Gt", "values": ["4"]}, True),
    ({"key": "rank", "operator": "Lt", "values": ["4"]}, False),
    ({"key": "rank", "operator": "Gt", "values": ["four"]}, False),
    ({"key": "rank", "operator": "Lt", "values": ["9" * 5000]}, False),
]


@pytest.mark.parametrize(("expression", "fits"), AFFINITIES)
def test_node_affinity(expression: dict[str, Any], fits: bool) -> None:  # noqa: FBT001
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {"spec": {"affinity": {"nodeAffinity": required}}}
    assert (fit.reasons(pod, NODE, {}) == []) is fits


def test_a_full_node() -> None:
    pod = {"spec": {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}}
    used = {"cpu": Decimal("0.6"), "pods": Decimal(1)}
    assert fit.reasons(pod, NODE, used) == ["Too many pods", "Insufficient cpu"]


def test_reasons_are_counted() -> None:
    message = fit.explain([["Insufficient cpu"], ["Insufficient cpu", "Too many pods"]])
    assert message.startswith("0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu. ")
