"""The mount options of JuiceFS: precedence, order, and parsing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidManifest
from app.domain.kinds.samples.specs.mount_options import (
    DEFAULT_CACHE_SIZE,
    CacheLevel,
    JuiceFSMountOptions,
    cache_dirs_of,
    mount_options,
    parse_mount_options,
)
from app.domain.plan import Manifest
from tests.domain.cache.made import a_pv, set_spec
from tests.support.json_values import UNHURRIED

OWN_DIR = "/dev/shm/jobgate/team/4b9ee1f2"
DEFAULT = f"cache-dir={OWN_DIR},cache-size={DEFAULT_CACHE_SIZE}"


def emitted(options: Manifest | None = None, *levels: Manifest) -> str:
    csi = None if options is None else {"juiceFSMountOptions": options}
    spec = set_spec(csi=csi, cache={"levels": list(levels)} if levels else None)
    return mount_options(spec.mount_options, spec.levels, "team", "4b9ee1f2")


def level(path: str | None, size: int = 0, medium: str = "SSD") -> Manifest:
    return {"mediumType": medium, "cacheSize": size, **({} if path is None else {"path": path})}


CASES: list[tuple[Manifest | None, list[Manifest], str]] = [
    (None, [], DEFAULT),
    ({}, [], DEFAULT),
    # Everything that can be set, in the order of the names.
    (
        {
            "metrics": "0.0.0.0:9567",
            "attr-cache": 7,
            "entry-cache": 8,
            "dir-entry-cache": 9,
            "enable-xattr": True,
            "get-timeout": 61,
            "put-timeout": 62,
            "io-retries": 3,
            "max-uploads": 21,
            "buffer-size": 301,
            "prefetch": 2,
            "writeback": True,
            "cache-dir": "/data",
            "cache-size": 100,
            "free-space-ratio": "0.2",
            "cache-partial-only": True,
            "open-cache": 5,
            "sub-dir": "/train",
        },
        [],
        (
            "attr-cache=7,buffer-size=301,cache-dir=/data/team/4b9ee1f2,cache-partial-only,cache-size=100,dir-entry-cache=9,"
            "enable-xattr,entry-cache=8,free-space-ratio=0.2,get-timeout=61,io-retries=3,max-uploads=21,metrics=0.0.0.0:9567,"
            "open-cache=5,prefetch=2,put-timeout=62,sub-dir=/train,writeback"
        ),
    ),
    # Zero and false are values.
    ({"cache-size": 0, "attr-cache": 0, "writeback": False}, [], f"attr-cache=0,cache-dir={OWN_DIR},cache-size=0"),
    ({"free-space-ratio": "", "metrics": ""}, [], DEFAULT),
    # A directory that a user gives gets one of the set's own, with a slash, and each of several does.
    ({"cache-dir": "/data/"}, [], DEFAULT.replace("/dev/shm/jobgate", "/data")),
    ({"cache-dir": "/a:/b//c"}, [], f"cache-dir=/a/team/4b9ee1f2:/b/c/team/4b9ee1f2,cache-size={DEFAULT_CACHE_SIZE}"),
    # So do the paths of levels, in their order; sizes are summed where there are any.
    (
        None,
        [level("/ssd:/nvme", 100), level("/hdd", 50)],
        "cache-dir=/ssd/team/4b9ee1f2:/nvme/team/4b9ee1f2:/hdd/team/4b9ee1f2,cache-size=150",
    ),
    ({"cache-dir": "/data", "cache-size": 7}, [level("/ssd")], "cache-dir=/ssd/team/4b9ee1f2,cache-size=7"),
    ({"cache-dir": "/data"}, [level(None, 9)], "cache-dir=/data/team/4b9ee1f2,cache-size=9"),
    (
        {"cache-size": 7},
        [level("/ssd"), level("/hdd", 5)],
        "cache-dir=/ssd/team/4b9ee1f2:/hdd/team/4b9ee1f2,cache-size=5",
    ),
    # A level without a path is skipped with its size where another has one.
    (None, [level("/ssd", 5), level(None, 90), level(None, 90)], "cache-dir=/ssd/team/4b9ee1f2,cache-size=5"),
    (None, [level(None, 5), level(None, 4)], f"cache-dir={OWN_DIR},cache-size=9"),
    (None, [level("/ssd", 0, "MEM")], f"cache-dir=/ssd/team/4b9ee1f2,cache-size={DEFAULT_CACHE_SIZE}"),
]


@pytest.mark.parametrize(("options", "levels", "expected"), CASES)
def test_mount_options_in_the_volume(options: Manifest | None, levels: list[Manifest], expected: str) -> None:
    assert emitted(options, *levels) == expected


def test_the_default_cache_size_is_the_capacity_of_the_volume() -> None:
    pebibytes = DEFAULT_CACHE_SIZE * 1024**2 / 1024**5
    assert a_pv(set_spec())["spec"]["capacity"]["storage"] == f"{pebibytes:.0f}Pi"


def test_sets_of_the_same_name_have_different_directories() -> None:
    spec = set_spec()
    one, other = (mount_options(spec.mount_options, spec.levels, space, "4b9ee1f2") for space in ("a", "b"))
    assert parse_mount_options(one)["cache-dir"] != parse_mount_options(other)["cache-dir"]


def test_directories_are_read_back_from_the_volume() -> None:
    spec = set_spec(cache={"levels": [level("/ssd:/nvme", 100), level("/hdd", 50)]})
    assert cache_dirs_of(a_pv(spec)) == tuple(f"{base}/team/4b9ee1f2" for base in ("/ssd", "/nvme", "/hdd"))


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ({}, "PersistentVolumeNotValid", "pv csi field team.imagenet is not valid"),
        ({"csi": {}}, "PersistentVolumeNotValid", "pv csi field team.imagenet is not valid"),
        (
            {"csi": {"volumeAttributes": {"a": "b"}}},
            "MountOptionsMissing",
            "pv mountOptions team.imagenet is not exist",
        ),
        ({"csi": {"volumeAttributes": {"mountOptions": "prefetch=1"}}}, "CacheDirNotValid", "cache-dir is not valid"),
        ({"csi": {"volumeAttributes": {"mountOptions": "cache-dir"}}}, "CacheDirNotValid", "cache-dir is not valid"),
        ({"csi": {"volumeAttributes": {"mountOptions": "cache-dir=:"}}}, "CacheDirNotValid", "cache-dir is not valid"),
    ],
)
def test_a_foreign_volume_is_refused(spec: Manifest, code: str, words: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        cache_dirs_of({"metadata": {"name": "team.imagenet"}, "spec": spec})
    assert (refused.value.code, refused.value.message) == (code, words)


NAMES = [field.alias or name for name, field in JuiceFSMountOptions.model_fields.items()]
WORDS = st.text("abc/.:-_09", max_size=8)
PATHS = st.from_regex(r"(/[a-z]{1,4}){1,3}", fullmatch=True)


@st.composite
def options(draw: st.DrawFn) -> JuiceFSMountOptions:
    kept: dict[str, Any] = {}
    for name, field in JuiceFSMountOptions.model_fields.items():
        kind = str(field.annotation)
        value = st.booleans() if "bool" in kind else st.integers(0, 99) if "int" in kind else WORDS
        if draw(st.booleans()):
            kept[field.alias or name] = draw(PATHS if name == "cache_dir" else value)
    return JuiceFSMountOptions.model_validate(kept)


@UNHURRIED
@given(options(), st.lists(st.builds(CacheLevel, path=st.none() | PATHS, cache_size=st.integers(0, 9)), max_size=3))
def test_options_are_sorted_and_read_back(given_options: JuiceFSMountOptions, levels: list[CacheLevel]) -> None:
    text = mount_options(given_options, levels, "team", "imagenet")
    read = parse_mount_options(text)
    assert list(read) == sorted(read)
    assert set(read) <= set(NAMES)
    for name, value in given_options.model_dump(by_alias=True, exclude_none=True).items():
        if name in ("cache-dir", "cache-size"):
            continue
        if value is True:
            assert read[name] is None
        elif value is False or value == "":
            assert name not in read
        else:
            assert read[name] == str(value)
    assert read["cache-dir"]
    assert read["cache-size"]
