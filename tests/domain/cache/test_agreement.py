"""The controller and the runtime servers agree on their messages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.job_options import JobOptions, clear_options, rmr_options, sync_options, warmup_options
from app.domain.cache.manifests.service import runtime_service
from app.domain.cache.naming import JUICEFS
from app.domain.cache.reconcile.cache_status import ServerReport
from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.values import StorageKeys
from app.domain.cache.vocabulary import JobType
from app.domain.kinds.samples.specs.sources import with_keys
from cacheserver.cli import runtime
from cacheserver.options import OPTIONS, CacheInfo, decode
from cacheserver.programs.secrets import sync_ends
from tests.domain.cache.made import IDENTITY, SITE, a_runtime, a_secret, job_spec, set_spec
from tests.support.json_values import UNHURRIED

SOURCES = SourceLimits(hosts=("minio.storage.svc",), directories=("/data",))
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
    "manager": "e.example.com",
    "worker": "f.example.com",
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
        sync_options(IDENTITY, spec, sync, keys, replace(SITE, sources=SOURCES)),
        warmup_options(IDENTITY, spec, warmup, SITE),
        rmr_options(IDENTITY, rmr, SITE),
        clear_options(IDENTITY, job_spec("clear"), a_runtime(spec)),
    ]


@pytest.mark.parametrize("options", all_options(), ids=lambda options: options.type)
def test_servers_understand_every_option(options: JobOptions) -> None:
    kind = options.type
    read = msgspec.to_builtins(decode(kind, msgspec.json.encode(options.option_file())))
    assert read == {name: tuple(v) if isinstance(v, list) else v for name, v in options.option_file().items()}


def read_by_servers(command: list[str]) -> dict[str, Any]:
    """Parse the command of a container with the command line of the runtime."""
    assert command[:2] == ["jobgate", "cache-runtime"]
    read = typer.main.get_command(runtime).commands[command[2]]  # type: ignore[attr-defined]
    context = read.make_context(command[2], command[3:])
    return {**context.params, "rest": context.args}


def test_the_server_command_matches_the_service_and_the_mounts() -> None:
    container = a_runtime(set_spec())["spec"]["template"]["spec"]["containers"][0]
    (port,) = runtime_service(IDENTITY)["spec"]["ports"]
    read = read_by_servers(container["command"])
    assert read["port"] == port["targetPort"] == container["ports"][0]["containerPort"] == 7716
    assert read["driver"] == JUICEFS
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {*map(str, read["cache_dirs"]), str(read["data_dir"]), str(read["token_file"].parent)} == mounts
    assert read["server_dir"] == Path("/runtime")


def test_the_pre_stop_hook_clears_every_cache_directory() -> None:
    spec = set_spec(cache={"levels": [{"mediumType": "SSD", "path": "/a:/b"}]})
    container = a_runtime(spec)["spec"]["template"]["spec"]["containers"][0]
    read = read_by_servers(container["lifecycle"]["preStop"]["exec"]["command"])
    assert [str(path) for path in read["cache_dirs"]] == ["/cache/a", "/cache/b"]
    assert read["rest"] == ["--paths=/cache/a/*", "--paths=/cache/b/*"]


def test_there_are_options_for_every_job_type() -> None:
    assert set(OPTIONS) == set(JobType)


def test_reports_have_the_fields_that_servers_serve() -> None:
    ours = set(ServerReport.__dataclass_fields__) - {"node", "error_message"}
    assert ours == set(CacheInfo.__struct_fields__) - {"error_massage"}


@UNHURRIED
@given(KEY, KEY)
def test_servers_decode_any_keys(access: str, secret: str) -> None:
    source, _ = sync_ends(with_keys("s3://bucket.example.com/x", StorageKeys(access, secret)), "file:///mnt/s")
    assert source.uri == "s3://bucket.example.com/x"
    assert list(source.environment.values()) == [access, secret]
