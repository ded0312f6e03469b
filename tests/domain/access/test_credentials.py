"""A job's credential opens that job under that installation's key, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.access.credentials import credential_of, is_credential_of

keys = st.binary(min_size=1, max_size=64)
uids = st.uuids().map(str)


@given(keys, uids)
def test_a_credential_is_valid_for_its_job_and_safe_in_variables_and_headers(key: bytes, uid: str) -> None:
    token = credential_of(key, uid)
    assert is_credential_of(key, uid, token)
    assert len(token) == 43
    assert token.isascii()
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(keys, keys, uids, uids)
def test_a_credential_is_not_valid_for_another_key_or_job(key: bytes, other: bytes, uid: str, stranger: str) -> None:
    token = credential_of(key, uid)
    assert is_credential_of(key, stranger, token) == (uid == stranger)
    assert is_credential_of(other, uid, token) == (key.rstrip(b"\0") == other.rstrip(b"\0"))  # HMAC pads keys with NUL


@given(keys, uids, st.text(max_size=60))
def test_other_tokens_are_not_valid(key: bytes, uid: str, token: str) -> None:
    assert not is_credential_of(key, uid, token)
