"""The option files for runtime servers, and the options that are refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.job_options import clear_options, rmr_options, sync_options, warmup_options
from app.domain.cache.source_limits import SourceLimits
from app.domain.errors import InvalidManifest
from app.domain.kinds.samples.kinds import SAMPLE_JOB
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.kinds.samples.specs.secret_refs import SecretRef, resolve_ref
from app.domain.plan import Manifest
from tests.domain.cache.made import IDENTITY, LIMITS, SITE, SOURCES, a_job, a_runtime, a_secret, job_spec, set_spec
from tests.support.json_values import UNHURRIED

MOUNT = "/mnt/imagenet"
S3 = "s3://bucket.example.com/train"
KEYS = {"access-key": "AK", "secret-key": "S/K"}
LEVELS = {"levels": [{"mediumType": "SSD", "path": "/data/cache:/ssd"}]}
PATHS = st.lists(st.sampled_from(["a", "b", "..", ".", "...", "", "c d", "*", "~"]), max_size=6).map("/".join)


def sync(options: Manifest | None = None, *, source: str | None = S3, **keys: str) -> Manifest:
    spec = SampleSetSpec.model_validate(
        {"partitions": 1, "secretRef": {"name": "a"}, **({"source": {"uri": source}} if source else {})}
    )
    job = None if options is None else job_spec("sync", syncOptions=options)
    return sync_options(IDENTITY, spec, job, a_secret(**keys), SITE).option_file()


SYNCS: list[tuple[Manifest | None, Manifest]] = [
    # Into the mount itself always with slashes: otherwise JuiceFS would add names to the mount's own.
    (None, {"source": f"{S3}/", "destination": f"file://{MOUNT}/"}),
    ({}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/"}),
    ({"source": "oss://other"}, {"source": "oss://other/", "destination": f"file://{MOUNT}/"}),
    ({"source": f"{S3}/"}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/"}),
    ({"destination": "/"}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/"}),
    ({"destination": "./."}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/"}),
    ({"destination": "a/b"}, {"source": S3, "destination": f"file://{MOUNT}/a/b"}),
    ({"destination": "/a/./b"}, {"source": S3, "destination": f"file://{MOUNT}/a/b"}),
    # One slash at the end makes two.
    ({"destination": "a/"}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/a/"}),
    ({"source": f"{S3}/", "destination": "a"}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/a/"}),
    ({"source": f"{S3}/", "destination": "a/"}, {"source": f"{S3}/", "destination": f"file://{MOUNT}/a/"}),
    (
        {"threads": 0, "update": False, "force-update": True, "exclude": "--x .*"},
        {
            "source": f"{S3}/",
            "destination": f"file://{MOUNT}/",
            "threads": 0,
            "update": False,
            "force-update": True,
            "exclude": "--x .*",
        },
    ),
]


@pytest.mark.parametrize(("options", "expected"), SYNCS)
def test_sync(options: Manifest | None, expected: Manifest) -> None:
    assert sync(options) == expected


def test_the_keys_of_a_sync_are_in_the_option_file_only() -> None:
    options = sync_options(IDENTITY, set_spec(), None, a_secret(**KEYS), SITE)
    assert options.values["source"] == f"{S3}/"
    assert options.option_file()["source"] == "s3://AK:S%2FK@bucket.example.com/train/"


def test_a_file_source_gets_no_keys() -> None:
    job = job_spec("sync", syncOptions={"source": "file:///data"})
    made = sync_options(IDENTITY, set_spec(), job, a_secret(**KEYS), replace(SITE, sources=SOURCES))
    assert made.option_file()["source"] == "file:///data/"


def test_what_a_sync_may_reach_is_in_its_option_file_and_not_in_its_digest() -> None:
    """A job that has failed or succeeded is not repeated because the operator has changed a setting."""
    hosts = ("minio.storage.svc", "10.1.0.0/16")
    site = replace(SITE, sources=SourceLimits(hosts=hosts, directories=("/data",)))
    before, after = (sync_options(IDENTITY, set_spec(), None, None, one) for one in (SITE, site))
    permitted = {"allowed-hosts": [*hosts], "allowed-directories": ["/data"]}
    assert after.option_file() == before.option_file() | permitted
    assert after.digest(b"one") == before.digest(b"one")


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"source": "webdav://169.254.169.254/"}, "/spec/syncOptions/source"),
        ({"source": "file:///cache/ssd/"}, "/spec/syncOptions/source"),
        ({"worker": "kubernetes.default.svc"}, "/spec/syncOptions/worker"),
        ({"manager": "10.0.0.1:6070"}, "/spec/syncOptions/manager"),
    ],
)
def test_a_stored_job_cannot_reach_what_is_not_allowed_any_more(options: Manifest, pointer: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        sync(options)
    (error,) = refused.value.errors
    assert (error.pointer, error.code) == (pointer, "SourceNotAllowed")


REFUSED_SYNCS = [
    ({}, None, "DataSourceEmpty", "data source cannot be empty", "/spec/source/uri"),
    (
        {"source": "bucket"},
        S3,
        "DataSourceFormat",
        "the format of data source uri is not support",
        "/spec/syncOptions/source",
    ),
    (
        {"source": "ftp://bucket"},
        S3,
        "StorageNotSupported",
        "the object storage ftp of is not support",
        "/spec/syncOptions/source",
    ),
]


@pytest.mark.parametrize(("options", "source", "code", "words", "pointer"), REFUSED_SYNCS)
def test_a_sync_that_is_refused(options: Manifest, source: str | None, code: str, words: str, pointer: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        sync(options, source=source)
    assert (refused.value.code, refused.value.message) == (code, words)
    assert [error.pointer for error in refused.value.errors] == [pointer]


@pytest.mark.parametrize("key", ["access-key", "secret-key"])
def test_a_sync_with_half_of_the_keys_is_refused(key: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        sync(None, **{key: "hush"})
    assert refused.value.code == "IncompleteKeys"
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({"name": "own", "namespace": "there"}, ("there", "own")),
        ({"name": "own"}, ("here", "own")),
        ({"namespace": "there"}, ("there", "sets")),
        ({}, ("here", "sets")),
    ],
)
def test_a_sets_sync_takes_name_and_namespace_of_its_secret_one_by_one(ref: Any, expected: tuple[str, str]) -> None:
    assert resolve_ref(SecretRef(**ref), SecretRef(name="sets", namespace="here"), "team") == expected


def test_a_secret_ref_defaults_to_the_namespace_of_the_manifest() -> None:
    assert resolve_ref(SecretRef(name="a"), None, "team") == ("team", "a")


def test_options_have_the_same_digest_until_they_or_their_keys_change() -> None:
    def digest(keys: dict[str, str], key: bytes = b"one") -> str:
        return sync_options(IDENTITY, set_spec(), None, a_secret(**keys), SITE).digest(key)

    assert digest(KEYS) == digest(KEYS)
    other = {**KEYS, "secret-key": "other"}
    assert len({digest({}), digest(KEYS), digest(other), digest(KEYS, b"two")}) == 4


WARMUPS: list[tuple[Manifest | None, Manifest]] = [
    (None, {"paths": [MOUNT]}),
    ({}, {"paths": [MOUNT]}),
    ({"paths": ["a", "/b/"]}, {"paths": [f"{MOUNT}/a", f"{MOUNT}/b"]}),
    ({"partitions": 9}, {"paths": [MOUNT]}),
    ({"strategyName": ""}, {"paths": [MOUNT]}),
    ({"strategyName": "random"}, {"paths": [MOUNT], "strategyName": "random"}),
    ({"file": "/lists/one", "threads": 7}, {"paths": [MOUNT], "file": f"{MOUNT}/lists/one", "threads": 7}),
]


@pytest.mark.parametrize(("options", "expected"), WARMUPS)
def test_warmup(options: Manifest | None, expected: Manifest) -> None:
    job = job_spec("warmup", **({"warmupOptions": options} if options is not None else {}))
    made = warmup_options(IDENTITY, set_spec(partitions=4), job, SITE)
    assert made.option_file() == {"partitions": 4, "strategyName": "sequence", **expected}


def test_rmr() -> None:
    job = job_spec("rmr", rmrOptions={"paths": ["a", "/b//c/"]})
    made = rmr_options(IDENTITY, job, SITE)
    assert made.option_file() == {"paths": [f"{MOUNT}/a", f"{MOUNT}/b/c"]}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (None, "RmrOptionsEmpty", "the options of rmr job cannot be empty"),
        ({"paths": []}, "RmrPathsEmpty", "option of paths cannot be empty, set it to relative paths of the mount"),
        ({"paths": ["../other"]}, "PathNotValid", 'the path "../other" has a .., which could leave the mount'),
        ({"paths": ["/"]}, "WholeVolume", "the path is the whole volume"),
    ],
)
def test_an_rmr_that_is_refused(options: Manifest | None, code: str, words: str) -> None:
    job = job_spec("rmr", **({"rmrOptions": options} if options is not None else {}))
    with pytest.raises(InvalidManifest) as refused:
        rmr_options(IDENTITY, job, SITE)
    (error,) = refused.value.errors
    assert (error.code, error.detail) == (code, words)


def clear(*paths: str) -> list[str]:
    job = job_spec("clear", **({"clearOptions": {"paths": list(paths)}} if paths else {}))
    made: list[str] = clear_options(IDENTITY, job, a_runtime(set_spec(cache=LEVELS))).option_file()["paths"]
    return made


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], ["/cache/data-cache/*", "/cache/ssd/*"]),
        (["/ssd"], ["/cache/ssd/*"]),
        (["/ssd/"], ["/cache/ssd/*"]),
        (["/ssd/*"], ["/cache/ssd/*"]),
        (["/cache/ssd"], ["/cache/ssd/*"]),
        (["/data/cache/raw/chunks"], ["/cache/data-cache/raw/chunks"]),
        (["/data/cache/raw/*"], ["/cache/data-cache/raw/*"]),
        # The directory of the set on the node, and one that another set would have there.
        (["/ssd/team/4b9ee1f2/raw"], ["/cache/ssd/raw"]),
        (["/ssd/team/4b9ee1f2"], ["/cache/ssd/*"]),
        (["/ssd/other/8ab2"], ["/cache/ssd/other/8ab2"]),
        (["/cache/data-cache/raw", "/ssd/x"], ["/cache/data-cache/raw", "/cache/ssd/x"]),
    ],
)
def test_clear(paths: list[str], expected: list[str]) -> None:
    assert clear(*paths) == expected


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/data", "ClearPathNotValid"),
        ("/data/cache2", "ClearPathNotValid"),
        ("ssd", "ClearPathNotValid"),
        ("", "ClearPathNotValid"),
        ("/mnt/imagenet", "ClearPathNotValid"),
        ("/run/jobgate-cache", "ClearPathNotValid"),
        ("/ssd/../etc", "PathNotValid"),
    ],
)
def test_a_clear_of_something_else_is_refused(path: str, code: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        clear(path)
    (error,) = refused.value.errors
    assert (error.pointer, error.code) == ("/spec/clearOptions/paths/0", code)
    if code == "ClearPathNotValid":
        assert error.detail == f"given path {path} is not valid, it should in host path or mount path"


def test_a_stateful_set_with_several_containers_is_refused() -> None:
    runtime = a_runtime(set_spec())
    runtime["spec"]["template"]["spec"]["containers"] *= 2
    with pytest.raises(InvalidManifest) as refused:
        clear_options(IDENTITY, job_spec("clear"), runtime)
    assert refused.value.code == "RuntimeNotValid"


@UNHURRIED
@given(PATHS, st.sampled_from(["warmup", "rmr", "sync", "clear"]))
def test_no_path_leaves_its_directory(path: str, kind: str) -> None:
    field = {"sync": {"destination": path}, "clear": {"paths": [f"/ssd/{path}"]}}.get(kind, {"paths": [path]})
    posted = a_job(kind, secretRef={"name": "a"}, **{f"{kind}Options": field})
    job = job_spec(kind, secretRef={"name": "a"}, **{f"{kind}Options": field})
    spec = set_spec(cache=LEVELS)
    try:
        SAMPLE_JOB.accept(posted, LIMITS)
        made = {
            "sync": lambda: [sync_options(IDENTITY, spec, job, None, SITE).values["destination"]],
            "warmup": lambda: warmup_options(IDENTITY, spec, job, SITE).values["paths"],
            "rmr": lambda: rmr_options(IDENTITY, job, SITE).values["paths"],
            "clear": lambda: clear_options(IDENTITY, job, a_runtime(spec)).values["paths"],
        }[kind]()
    except InvalidManifest:
        assert ".." in path.split("/") or kind == "rmr"
        return
    for each in made:
        place = each.removeprefix("file://")
        base = "/cache/ssd" if kind == "clear" else MOUNT
        assert place == base or place.startswith(f"{base}/")
        assert kind != "sync" or place != base
        assert ".." not in place.split("/")
        assert kind != "rmr" or place.rstrip("/") != base


def test_the_mount_path_is_configurable() -> None:
    site = replace(SITE, data_mount_path="/data")
    made = rmr_options(IDENTITY, job_spec("rmr", rmrOptions={"paths": ["a"]}), site)
    assert made.values["paths"] == ["/data/imagenet/a"]
