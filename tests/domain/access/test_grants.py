"""The text that grants roles to groups, and the rights of a user with several groups."""

import pytest

from app.domain.access.credentials import Role
from app.domain.access.grants import Grant, grants_of, read_group_grants, strongest, union

LAB = Grant(Role.VIEWER, frozenset({"lab"}))
EVERYWHERE = Grant(Role.ADMIN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" ;\n; ", {}),
        ("a=viewer:lab", {"a": [LAB]}),
        ("a=viewer:lab; b=admin:*", {"a": [LAB], "b": [EVERYWHERE]}),
        ("a = viewer : lab ,\n a=admin:*\n", {"a": [LAB, EVERYWHERE]}),
        ("a=submitter:x,y", {"a": [Grant(Role.SUBMITTER, frozenset({"x", "y"}))]}),
        ("a=viewer:lab,*", {"a": [Grant(Role.VIEWER)]}),
        ("CN=ml,OU=a b,DC=x=viewer:lab", {"CN=ml,OU=a b,DC=x": [LAB]}),
        ("/org/team:x=viewer:lab", {"/org/team:x": [LAB]}),
        ("*=viewer:lab", {"*": [LAB]}),
    ],
)
def test_grants_are_read(text: str, expected: dict[str, list[Grant]]) -> None:
    assert read_group_grants(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "not of the form"),
        ("a=viewer", "not of the form"),
        ("=viewer:lab", "not of the form"),
        ("viewer:lab", "not of the form"),
        ("a=owner:lab", "there is no role owner"),
        ("a=viewer:", "names no namespace"),
        ("a=viewer:Lab", "the namespace Lab"),
        ("a=viewer:ok; b=viewer:not/ok", "the namespace not/ok"),
    ],
)
def test_wrong_grants_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_group_grants(text)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], (LAB,)),
        (["none"], (LAB,)),
        (["ops"], (LAB, EVERYWHERE)),
        (["ops", "ops", "same"], (LAB, EVERYWHERE)),
        (["OPS"], (LAB,)),
    ],
)
def test_a_user_has_the_grants_of_all_its_groups(groups: list[str], expected: tuple[Grant, ...]) -> None:
    granted = read_group_grants("*=viewer:lab; ops=admin:*; same=viewer:lab")
    assert grants_of(groups, granted) == expected


def test_without_a_grant_for_everybody_a_stranger_has_none() -> None:
    assert grants_of(["*"], read_group_grants("ops=admin:*")) == ()


def test_the_union_and_the_strongest_role() -> None:
    mine = Grant(Role.SUBMITTER, frozenset({"mine"}))
    assert union([LAB, mine]) == frozenset({"lab", "mine"})
    assert union([LAB, EVERYWHERE]) is None
    assert union([]) == frozenset()
    assert strongest([Role.SUBMITTER, Role.VIEWER]) is Role.SUBMITTER
    assert strongest([]) is None
