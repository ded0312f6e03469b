"""A job's credential opens that job under that installation's key, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.access.credentials import credential_of, is_credential_of

keys = st.binary(min_size=1, max_size=64)
uids = st.uuids().map(str)


@given(keys, uids)
def test_a_credential_opens_its_own_job_and_fits_an_environment_and_a_header(key: bytes, uid: str) -> None:
    token = credential_of(key, uid)
    assert is_credential_of(key, uid, token)
    assert len(token) == 43
    assert token.isascii()
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(keys, keys, uids, uids)
def test_it_opens_nothing_under_another_key_or_of_another_job(
    key: bytes, other: bytes, uid: str, stranger: str
) -> None:
    token = credential_of(key, uid)
    assert is_credential_of(key, stranger, token) == (uid == stranger)
    assert is_credential_of(other, uid, token) == (key.rstrip(b"\0") == other.rstrip(b"\0"))  # HMAC pads keys with NUL


@given(keys, uids, st.text(max_size=60))
def test_anything_else_opens_nothing(key: bytes, uid: str, token: str) -> None:
    assert not is_credential_of(key, uid, token)
