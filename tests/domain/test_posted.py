"""The record of a posted manifest: exact, short, and bound to the accepted manifest that it was made for."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.specs.limits import ANY_CACHE_ROOTS, CacheLimits
from app.domain.cache.specs.source_limits import SourceLimits
from app.domain.kinds.registry import PODLESS_KINDS
from app.domain.plan import Manifest
from app.domain.planning import Planner
from app.domain.policy import PodPolicy
from app.domain.policy.table import Level
from app.domain.posted import applied, carried_over, difference, recall, record
from app.services.podless_drafts import drafted
from tests.support.json_values import JSON_VALUES, TEXT

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted([*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("tests/data/*/*/manifest.yaml")])
OBJECTS = st.dictionaries(TEXT, JSON_VALUES, max_size=6)
ACCEPTED = {"kind": "X", "metadata": {"name": "a"}, "spec": {"replicas": 1, "policy": "None"}}


def stored(value: Any) -> Any:
    """Return the value after it was written to the database and read again."""
    return msgspec.json.decode(msgspec.json.encode(value))


def documents() -> list[Any]:
    return [
        pytest.param(document, id=f"{path.relative_to(ROOT)}-{place}")
        for path in MANIFESTS
        for place, document in enumerate(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        if document["kind"] not in ("Secret", "ConfigMap", "List")
    ]


def accepted(document: Manifest) -> Manifest:
    if kind := PODLESS_KINDS.get(document["kind"]):
        limits = CacheLimits(
            namespace="default",
            cache_roots=ANY_CACHE_ROOTS,
            secret_namespaces=frozenset({"team"}),
            sources=SourceLimits(directories=("/var/tmp",)),
        )
        return drafted(kind, document, "default", limits, lambda: "x7k2m").manifest
    return (
        Planner(installation="i", policy=PodPolicy(level=Level.PRIVILEGED, service_accounts=frozenset("*")))
        .draft(document, "default", lambda: "x7k2m", administers=True)
        .manifest
    )


@st.composite
def variants(draw: st.DrawFn, value: Any) -> Any:
    """Draw a document that differs from this one here and there, in fields, their order, items and types."""
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        kept = keys[: draw(st.integers(0, len(keys)))] if draw(st.booleans()) else keys
        return {key: draw(variants(value[key])) for key in kept} | draw(st.dictionaries(TEXT, JSON_VALUES, max_size=1))
    if isinstance(value, list):
        return [draw(variants(item)) for item in value] + draw(st.lists(JSON_VALUES, max_size=1))
    return draw(st.just(value) | st.sampled_from([None, True, 1, 1.0, "1", {}, []]))


@given(pair=OBJECTS.flatmap(lambda base: st.tuples(st.just(base), variants(base) | OBJECTS)))
def test_the_posted_document_is_recalled_exactly(pair: tuple[Manifest, Manifest]) -> None:
    base, posted = pair
    recalled = recall(stored(base), stored(record(base, posted)))
    # The text also compares the order of fields and the types of numbers.
    assert json.dumps(recalled) == json.dumps(posted)


@pytest.mark.parametrize("document", documents())
def test_the_manifests_of_every_kind_are_recalled(document: Manifest) -> None:
    manifest = accepted(document)
    posted = record(manifest, document)
    assert json.dumps(recall(stored(manifest), stored(posted))) == json.dumps(document)


def test_records_are_short() -> None:
    shipped = [parameter.values[0] for parameter in documents() if str(parameter.id).startswith("examples")]
    records = [record(accepted(document), document) for document in shipped]
    assert len(json.dumps(records)) < len(json.dumps(shipped)) / 5


@pytest.mark.parametrize(
    ("base", "wanted", "change"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 1}, {"keys": ["a"]}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"keys": ["b", "a"]}),
        ({"a": 1}, {"a": 2}, {"within": {"a": {"value": 2}}}),
        ({"a": 1}, {"a": True}, {"within": {"a": {"value": True}}}),
        ({"a": 1}, {"a": 1.0}, {"within": {"a": {"value": 1.0}}}),
        ({"a": {}}, {"a": None}, {"within": {"a": {"value": None}}}),
        ({}, {"a": {"b": 1}}, {"keys": ["a"], "within": {"a": {"value": {"b": 1}}}}),
        ([1, 2], [1, 3], {"within": {"1": {"value": 3}}}),
        ([1, 2], [1], {"value": [1]}),
        ([{"a": 1, "b": 2}], [{"a": 1}], {"within": {"0": {"keys": ["a"]}}}),
        ({"value": 1}, {"keys": 1}, {"keys": ["keys"], "within": {"keys": {"value": 1}}}),
    ],
)
def test_a_difference_has_only_what_differs(base: Any, wanted: Any, change: Manifest) -> None:
    assert difference(base, wanted) == change
    assert json.dumps(applied(base, change)) == json.dumps(wanted)


def test_a_record_is_not_applied_to_another_manifest() -> None:
    """A process of a version that keeps no records has edited the manifest."""
    posted = record(ACCEPTED, {"spec": {}})
    assert recall({**ACCEPTED, "spec": {"replicas": 2, "policy": "None"}}, posted) is None
    assert recall(ACCEPTED, None) is None


def test_a_record_is_carried_over_to_the_next_manifest() -> None:
    document = {"kind": "X", "metadata": {"name": "a"}, "spec": {"replicas": 1}}
    resized = {**ACCEPTED, "spec": {"replicas": 4, "policy": "None"}}
    carried = carried_over(ACCEPTED, record(ACCEPTED, document), resized)
    assert recall(resized, carried) == document
    assert carried_over(resized, record(ACCEPTED, document), ACCEPTED) is None
