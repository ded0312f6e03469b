"""Refresh tokens that this installation has sealed."""

import pytest

from app.domain.access.renewals import BrokenSeal, Renewal, seal, unseal

KEY = b"key"


@pytest.mark.parametrize("token", ["t", "a.b.c.d", "jgr.a.b.c"])
def test_a_sealed_token_is_read_with_its_user(token: str) -> None:
    assert unseal(KEY, seal(KEY, "user", token)) == Renewal(token, "user")


@pytest.mark.parametrize("text", ["", "token", "jgr", "jgr.user", "jgr.user.seal", "a.b.c.d", "JGR.user.seal.token"])
def test_a_token_without_a_seal_is_unchanged(text: str) -> None:
    assert unseal(KEY, text) == Renewal(text)


@pytest.mark.parametrize(
    "text",
    ["jgr.user.seal.token", seal(b"other", "user", "t"), seal(KEY, "user", "t") + "x", "jgr.user..token"],
)
def test_a_wrong_seal_is_refused(text: str) -> None:
    with pytest.raises(BrokenSeal):
        unseal(KEY, text)
