"""Claims of verified tokens: times, names and groups."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.access.claims import LEEWAY, ClaimNames, InvalidClaims, expiry, groups_of, name_of, subject_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = NOW.timestamp()


@pytest.mark.parametrize(
    ("claims", "seconds"),
    [
        ({"exp": SECONDS + 60}, 60 + LEEWAY),
        ({"exp": SECONDS}, LEEWAY),
        ({"exp": SECONDS - LEEWAY + 0.5}, 0.5),
        ({"exp": SECONDS + 60, "nbf": SECONDS + LEEWAY}, 60 + LEEWAY),
    ],
)
def test_a_token_is_valid_until_its_end_and_the_leeway(claims: dict[str, Any], seconds: float) -> None:
    assert expiry(claims, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({}, "no time of expiry"),
        ({"exp": SECONDS - LEEWAY}, "has expired"),
        ({"exp": SECONDS + 60, "nbf": SECONDS + LEEWAY + 1}, "not valid yet"),
        ({"exp": True}, "exp"),
        ({"exp": "1"}, "exp"),
        ({"exp": -1}, "exp"),
        ({"exp": float("inf")}, "exp"),
        ({"exp": float("nan")}, "exp"),
        ({"exp": 10**400}, "exp"),
        ({"exp": SECONDS + 60, "nbf": []}, "nbf"),
    ],
)
def test_a_token_without_valid_times_is_refused(claims: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidClaims, match=message):
        expiry(claims, NOW)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"sub": "s", "preferred_username": "ada", "email": "a@x"}, "ada"),
        ({"sub": "s", "email": "a@x"}, "a@x"),
        ({"sub": "s", "preferred_username": "", "email": 7}, "s"),
        ({"sub": "s", "preferred_username": "a\x1b[2Jb"}, "a\N{REPLACEMENT CHARACTER}[2Jb"),
        ({"sub": "s" * 250}, "s" * 127 + "…"),
    ],
)
def test_the_name_is_the_first_present_claim(claims: dict[str, Any], expected: str) -> None:
    assert name_of(claims, ClaimNames()) == expected


@pytest.mark.parametrize("subject", [None, "", 7, ["s"], "s" * 256])
def test_a_token_names_its_user(subject: object) -> None:
    with pytest.raises(InvalidClaims, match="sub"):
        subject_of({"sub": subject})


@pytest.mark.parametrize(
    ("name", "claims", "expected"),
    [
        ("groups", {}, set()),
        ("groups", {"groups": ["a", "b", "a"]}, {"a", "b"}),
        ("groups", {"groups": "a"}, {"a"}),
        ("groups", {"groups": ["a", 7, None, ["b"]]}, {"a"}),
        ("groups", {"groups": {"a": 1}}, set()),
        ("realm.roles", {"realm": {"roles": ["a"]}}, {"a"}),
        ("realm.roles", {"realm": ["roles"]}, set()),
        ("https://x.example/groups", {"https://x.example/groups": ["a"]}, {"a"}),
        ("a.b", {"a.b": ["whole"], "a": {"b": ["path"]}}, {"whole"}),
    ],
)
def test_groups_are_texts_of_the_claim_or_of_the_path(name: str, claims: dict[str, Any], expected: set[str]) -> None:
    assert groups_of(claims, ClaimNames(groups=name)) == expected
