"""The store by uid, name and label, and whom it tells."""

import pytest

from app.domain.kubernetes.objects import Pod
from app.k8s.watching.store import ReflectorStore, by_label
from tests.k8s.scripted import JOB, pod


@pytest.fixture
def reported() -> list[str]:
    return []


@pytest.fixture
def store(reported: list[str]) -> ReflectorStore[Pod]:
    store = ReflectorStore[Pod](by_label(JOB), reported.append)
    store.replaced([pod("a", 1, "p0", "x"), pod("b", 2, "p1", "x"), pod("c", 3, "q0", "y")])
    reported.clear()
    return store


def test_a_list_reports_only_changed_objects(store: ReflectorStore[Pod], reported: list[str]) -> None:
    store.replaced([pod("a", 1, "p0", "x"), pod("b", 2, "p1", "x"), pod("d", 9, "q0", "y")])
    assert reported == ["y"]
    assert store.get("c") is None
    assert [p.metadata.uid for p in store.get_by_index("y")] == ["d"]


def test_a_vanished_object_is_reported(store: ReflectorStore[Pod], reported: list[str]) -> None:
    store.replaced([])
    assert sorted(reported) == ["x", "y"]
    assert len(store) == 0
    assert store.get_by_index("x") == store.get_by_index("y") == []


def test_a_change_of_the_label_is_reported_for_both_values(store: ReflectorStore[Pod], reported: list[str]) -> None:
    store.applied(pod("a", 5, "p0", "y"))
    assert sorted(reported) == ["x", "y"]
    assert [p.metadata.uid for p in store.get_by_index("x")] == ["b"]
    assert {p.metadata.uid for p in store.get_by_index("y")} == {"a", "c"}


def test_a_new_object_replaces_an_older_one_with_its_name(store: ReflectorStore[Pod], reported: list[str]) -> None:
    store.applied(pod("n", 9, "p0", "z"))
    assert sorted(reported) == ["x", "z"]
    assert store.get("a") is None
    reported.clear()
    store.applied(pod("a", 4, "p0", "x"))
    store.deleted(pod("a", 8, "p0", "x"))
    assert reported == []
    holder = store.get_by_name("ns", "p0")
    assert holder is not None
    assert holder.metadata.uid == "n"


def test_objects_without_the_label_are_kept_and_not_reported(store: ReflectorStore[Pod], reported: list[str]) -> None:
    store.applied(pod("s", 9, "stray", ""))
    assert reported == []
    assert store.get_by_name("ns", "stray") is not None
    assert store.get_by_name("ns", "nobody") is None
