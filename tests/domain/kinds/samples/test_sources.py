"""URIs of data sources: the storages, the refused URIs, and the place of credentials."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.source_limits import STORAGES
from app.domain.cache.values import StorageKeys
from app.domain.kinds.samples.specs.sources import with_keys, wrong_source
from tests.support.json_values import UNHURRIED

KEYS = StorageKeys("AK", "SK")
KEY = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)


def test_there_are_upstreams_31_storages() -> None:
    assert len(STORAGES) == len(set(STORAGES)) == 31


@pytest.mark.parametrize("storage", STORAGES)
def test_each_storage_is_accepted(storage: str) -> None:
    assert wrong_source(f"{storage}://bucket.example.com/data") is None


REFUSED = [
    ("", "DataSourceEmpty", "data source cannot be empty"),
    ("bucket", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3:/bucket", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3://a://b", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3://", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3:///", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3://bucket with space", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3://bucket\n", "DataSourceFormat", "the format of data source uri is not support"),
    ("s3://ak:s/k@bucket", "DataSourceFormat", "the format of data source uri is not support"),
    ("ftp://bucket", "StorageNotSupported", "the object storage ftp of is not support"),
    ("S3://bucket", "StorageNotSupported", "the object storage S3 of is not support"),
    ("://bucket", "StorageNotSupported", "the object storage  of is not support"),
]


@pytest.mark.parametrize(("uri", "code", "words"), REFUSED)
def test_invalid_specs_are_refused(uri: str, code: str, words: str) -> None:
    wrong = wrong_source(uri)
    assert wrong
    assert (wrong.code, wrong.detail) == (code, words)


@pytest.mark.parametrize(
    "uri",
    [
        *("s3://ak:sk@bucket/x", "s3:///ak:sk@bucket/x", "s3://ak@bucket", "hdfs://u:p@host/", "redis://:pw@host/1"),
        *(
            "s3://A/K:sk@bucket",
            "s3://A/K/:sk@bucket/x",
        ),
    ],
)
def test_credentials_in_a_source_are_refused_and_not_quoted(uri: str) -> None:
    wrong = wrong_source(uri)
    assert wrong
    assert wrong.code == "CredentialsInSource"
    assert "@" not in wrong.detail


@pytest.mark.parametrize("uri", ["s3://bucket/a@b/c", "s3://bucket/day=1:2/x", "hdfs://u@host:8020/x"])
def test_a_prefix_may_have_an_at_or_a_colon(uri: str) -> None:
    assert wrong_source(uri) is None


CREDENTIALS = [
    ("s3://bucket/x", KEYS, "s3://AK:SK@bucket/x"),
    ("s3:///bucket/x", KEYS, "s3:///AK:SK@bucket/x"),
    ("s3://bucket/x", None, "s3://bucket/x"),
    ("s3://bucket/x", StorageKeys("A+K", "a/b=c@d:e"), "s3://A%2BK:a%2Fb%3Dc%40d%3Ae@bucket/x"),
    ("file:///data/x", KEYS, "file:///data/x"),
]


@pytest.mark.parametrize(("uri", "keys", "expected"), CREDENTIALS)
def test_the_place_of_keys_in_a_uri(uri: str, keys: StorageKeys | None, expected: str) -> None:
    assert with_keys(uri, keys) == expected


@UNHURRIED
@given(KEY, KEY, st.sampled_from([name for name in STORAGES if name != "file"]))
def test_any_keys_are_decoded_unchanged(access: str, secret: str, storage: str) -> None:
    read = urlsplit(with_keys(f"{storage}://bucket.example.com:9000/x@y", StorageKeys(access, secret)))
    assert (unquote(read.username or ""), unquote(read.password or "")) == (access, secret)
    assert (read.hostname, read.port, read.path) == ("bucket.example.com", 9000, "/x@y")
