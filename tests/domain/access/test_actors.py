"""Identities of actors: no name and no subject can make one actor look like another."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.access.actors import ANONYMOUS, AUTOSCALER, CONTROLLER, Actor, is_identity

ISSUERS = st.sampled_from(["https://id.example", "https://id.example/", "https://id.example:8443/realms/lab"])
USERS = st.tuples(ISSUERS, st.text(min_size=1, max_size=20) | st.sampled_from(["a#b", "%23", "#", "controller"]))


@given(USERS, USERS, st.text(max_size=10))
def test_users_have_the_same_identity_only_if_issuer_and_subject_are_equal(
    one: tuple[str, str], other: tuple[str, str], name: str
) -> None:
    first, second = Actor.user(*one, name), Actor.user(*other, name)
    assert (first == second) == (one == other)
    assert first.id is not None
    assert first.id.isprintable()
    assert is_identity(first.id)


@given(st.text(min_size=1, max_size=20))
def test_kinds_of_actors_never_share_an_identity(text: str) -> None:
    ids = [
        actor.id
        for actor in (
            Actor.token(text, "jobgate"),
            Actor.user("https://id.example", text, "jobgate"),
            Actor.job(text, "jobgate"),
            CONTROLLER,
            AUTOSCALER,
            ANONYMOUS,
        )
    ]
    assert len(set(ids)) == len(ids)


def test_a_subject_stays_readable() -> None:
    assert Actor.user("https://id.example", "auth0|5f7c", "ann").id == "user:https://id.example#auth0|5f7c"
    assert Actor.user("https://id.example", "a b\n%", "ann").id == "user:https://id.example#a%20b%0A%25"
    assert not any(is_identity(text) for text in ("ann", "jobgate", "tokens", "user", "me", ""))
