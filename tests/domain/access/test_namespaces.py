"""Which namespaces are members of a set, and of what two sets have in common."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet

NAMES = st.sampled_from(("team-a", "team-b", "jobgate-system", "kube-system", "kube-node-lease", "kubeflow"))
SETS = st.builds(
    NamespaceSet,
    only=st.none() | st.frozensets(NAMES),
    never=st.frozensets(NAMES),
)


@pytest.mark.parametrize(
    ("namespaces", "name", "member"),
    [
        (EVERY_NAMESPACE, "team-a", True),
        (EVERY_NAMESPACE, "kubeflow", True),
        (EVERY_NAMESPACE, "kube-system", False),
        (EVERY_NAMESPACE, "kube-anything", False),
        (NamespaceSet.of("team-a"), "team-a", True),
        (NamespaceSet.of("team-a"), "team-b", False),
        (NamespaceSet.of("kube-system"), "kube-system", False),
        (NamespaceSet.of(), "team-a", False),
        (NamespaceSet(never=frozenset({"team-a"})), "team-a", False),
        (NamespaceSet(only=frozenset({"team-a"}), never=frozenset({"team-a"})), "team-a", False),
        (NamespaceSet(never=frozenset({"team-a"})), "team-b", True),
    ],
)
def test_members(namespaces: NamespaceSet, name: str, *, member: bool) -> None:
    assert (name in namespaces) is member


@given(SETS, SETS, NAMES)
def test_an_intersection_has_the_members_of_both(one: NamespaceSet, other: NamespaceSet, name: str) -> None:
    assert (name in one & other) == (name in one and name in other)


@given(SETS, NAMES)
def test_the_listed_names_are_the_members(namespaces: NamespaceSet, name: str) -> None:
    if namespaces.names is None:
        assert (name in namespaces) == (name not in namespaces.excluded and not name.startswith("kube-"))
    else:
        assert (name in namespaces) == (name in namespaces.names)


def test_all_processes_write_a_set_alike() -> None:
    """A page token of one process is valid in the others."""
    program = "from app.domain.access.namespaces import NamespaceSet; print(NamespaceSet.of(*'abcdefgh'))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
