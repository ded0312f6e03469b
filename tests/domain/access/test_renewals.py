"""Refresh tokens that this installation has sealed."""

import pytest

from app.domain.access.renewals import BrokenSeal, Renewal, opened, sealed

KEY = b"key"


@pytest.mark.parametrize("token", ["t", "a.b.c.d", "jgr.a.b.c"])
def test_a_sealed_token_is_read_with_its_user(token: str) -> None:
    assert opened(KEY, sealed(KEY, "user", token)) == Renewal(token, "user")


@pytest.mark.parametrize("text", ["", "token", "jgr", "jgr.user", "jgr.user.seal", "a.b.c.d", "JGR.user.seal.token"])
def test_a_token_without_a_seal_is_unchanged(text: str) -> None:
    assert opened(KEY, text) == Renewal(text)


@pytest.mark.parametrize(
    "text",
    ["jgr.user.seal.token", sealed(b"other", "user", "t"), sealed(KEY, "user", "t") + "x", "jgr.user..token"],
)
def test_a_wrong_seal_is_refused(text: str) -> None:
    with pytest.raises(BrokenSeal):
        opened(KEY, text)
