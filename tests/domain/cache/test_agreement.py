"""The driver and the runtime servers mean the same by what passes between them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache_runtime.options import OPTIONS, JobKind, decoded
from app.cache_runtime.options import CacheStatus as Served
from app.cache_runtime.secrets import endpoints
from app.domain.cache.job_options import JobOptions
from app.domain.cache.sample_job import JobType
from app.domain.cache.sources import with_credentials
from app.domain.cache.status import ServerReport
from app.domain.cache.values import Credentials
from tests.domain.cache.made import DRIVER, IDENTITY, SITE, a_runtime, a_secret, job_spec, set_spec
from tests.support.json_values import UNHURRIED

KEY = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)
SYNC = {
    "destination": "a/",
    "start": "a",
    "end": "b",
    "threads": 1,
    "http-port": 2,
    "update": True,
    "force-update": True,
    "perms": True,
    "dirs": True,
    "dry": True,
    "delete-src": True,
    "delete-dst": True,
    "exclude": "c",
    "include": "d",
    "manager": "e",
    "worker": "f",
    "bwlimit": 3,
    "no-https": True,
}


def all_options() -> list[JobOptions]:
    spec = set_spec()
    sync = job_spec("sync", syncOptions=SYNC)
    warmup = job_spec("warmup", warmupOptions={"paths": ["a"], "strategyName": "random", "file": "l", "threads": 4})
    rmr = job_spec("rmr", rmrOptions={"paths": ["a"]})
    keys = a_secret(**{"access-key": "AK", "secret-key": "SK"})
    return [
        DRIVER.create_sync_job_options(IDENTITY, spec, sync, keys, SITE),
        DRIVER.create_warmup_job_options(IDENTITY, spec, warmup, SITE),
        DRIVER.create_rmr_job_options(IDENTITY, rmr, SITE),
        DRIVER.create_clear_job_options(job_spec("clear"), a_runtime(spec)),
    ]


@pytest.mark.parametrize("options", all_options(), ids=lambda options: options.type)
def test_servers_understand_every_option(options: JobOptions) -> None:
    kind = JobKind(options.type)
    read = msgspec.to_builtins(decoded(kind, msgspec.json.encode(options.option_file())))
    assert read == {name: tuple(v) if isinstance(v, list) else v for name, v in options.option_file().items()}


def test_both_know_the_same_jobs() -> None:
    assert {kind.value for kind in JobType} == {kind.value for kind in JobKind} == {kind.value for kind in OPTIONS}


def test_reports_have_what_servers_serve() -> None:
    ours = set(ServerReport.__dataclass_fields__) - {"node", "error_message"}
    assert ours == set(Served.__struct_fields__) - {"error_massage"}


@UNHURRIED
@given(KEY, KEY)
def test_servers_read_any_keys(access: str, secret: str) -> None:
    source, _ = endpoints(with_credentials("s3://bucket.example.com/x", Credentials(access, secret)), "file:///mnt/s")
    assert source.uri == "s3://bucket.example.com/x"
    assert list(source.environment.values()) == [access, secret]
