"""The validation of SampleSets."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.cache.limits import CacheLimits
from app.domain.cache.source_limits import SourceLimits
from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.samples.kinds import SAMPLE_SET
from app.domain.plan import Manifest
from tests.domain.cache.made import LIMITS, a_set
from tests.support.json_values import JSON_VALUES, UNHURRIED

LEVELS = "/spec/cache/levels"
OPTIONS = "/spec/csi/juiceFSMountOptions"


def errors_of(manifest: Manifest, limits: CacheLimits = LIMITS) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidManifest) as refused:
        SAMPLE_SET.accept(manifest, limits)
    return refused.value.errors


def mounted(**options: Any) -> Manifest:
    return a_set(csi={"juiceFSMountOptions": {name.replace("_", "-"): value for name, value in options.items()}})


def levelled(*levels: Manifest) -> Manifest:
    return a_set(cache={"levels": list(levels)})


def level(path: Any = "/data/cache", medium: Any = "SSD", **more: Any) -> Manifest:
    return {"mediumType": medium, "path": path, **more}


def test_a_minimal_manifest_gets_defaults() -> None:
    accepted = SAMPLE_SET.accept(a_set(), LIMITS)
    assert accepted["spec"] == {
        "partitions": 2,
        "source": {"uri": "s3://bucket.example.com/train"},
        "secretRef": {"name": "storage", "namespace": ""},
        "noSync": False,
        "csi": {"driver": "juicefs"},
        "tolerations": [],
    }
    assert SAMPLE_SET.accept(accepted, LIMITS) == accepted


REFUSED: list[tuple[Manifest, str, str]] = [
    (a_set("a" * 45), "/metadata/name", "NameTooLong"),
    (a_set("1st"), "/metadata/name", "InvalidName"),
    (a_set("a.b"), "/metadata/name", "InvalidName"),
    (a_set("A"), "/metadata/name", "InvalidName"),
    (a_set(partitions=None), "/spec/partitions", "Required"),
    (a_set(partitions=0), "/spec/partitions", "OutOfRange"),
    (a_set(partitions=-1), "/spec/partitions", "OutOfRange"),
    (a_set(partitions=1001), "/spec/partitions", "OutOfRange"),
    (a_set(partitions=2**31), "/spec/partitions", "OutOfRange"),
    (a_set(partitions="2"), "/spec/partitions", "InvalidType"),
    (a_set(partition=2), "/spec/partition", "UnknownField"),
    (a_set(source=None), "/spec/source", "DataSourceEmpty"),
    (a_set(source={}), "/spec/source/uri", "DataSourceEmpty"),
    (a_set(source={"uri": ""}), "/spec/source/uri", "DataSourceEmpty"),
    (a_set(source={"uri": "s3://buck"}), "/spec/source/uri", "TooShort"),
    (a_set(source={"uri": "s3://buck"}, noSync=True), "/spec/source/uri", "TooShort"),
    (a_set(source={"uri": ""}, noSync=True), "/spec/source/uri", "DataSourceEmpty"),
    (a_set(source={"uri": "bucket/of/data"}), "/spec/source/uri", "DataSourceFormat"),
    (a_set(source={"uri": "s3://a://bucket"}), "/spec/source/uri", "DataSourceFormat"),
    (a_set(source={"uri": "hdfs://host:\N{ARABIC-INDIC DIGIT ONE}/x"}), "/spec/source/uri", "DataSourceFormat"),
    (a_set(source={"uri": "ftp://host/data"}), "/spec/source/uri", "StorageNotSupported"),
    (a_set(source={"uri": "s3://ak:sk@bucket"}), "/spec/source/uri", "CredentialsInSource"),
    (a_set(source={"uri": "s3://ak:sk@bucket"}, noSync=True), "/spec/source/uri", "CredentialsInSource"),
    (
        a_set(source={"uri": "s3://bucket/x", "secretRef": {"namespace": "other"}}),
        "/spec/source/secretRef/namespace",
        "SecretNamespace",
    ),
    (a_set(secretRef=None), "/spec/secretRef", "SecretRefEmpty"),
    (a_set(secretRef={}), "/spec/secretRef/name", "SecretRefNameEmpty"),
    (a_set(secretRef={"name": "A_b"}), "/spec/secretRef/name", "InvalidName"),
    (a_set(secretRef={"name": "a", "namespace": "other"}), "/spec/secretRef/namespace", "SecretNamespace"),
    (a_set(csi={"driver": "alluxio"}), "/spec/csi/driver", "DriverNotFound"),
    (a_set(csi={"driver": ""}), "/spec/csi/driver", "DriverNotFound"),
    (mounted(free_space_ratio="much"), f"{OPTIONS}/free-space-ratio", "FreeSpaceRatioNotValid"),
    (mounted(free_space_ratio="1"), f"{OPTIONS}/free-space-ratio", "FreeSpaceRatioNotValid"),
    (mounted(free_space_ratio="-0.1"), f"{OPTIONS}/free-space-ratio", "FreeSpaceRatioNotValid"),
    (mounted(free_space_ratio="nan"), f"{OPTIONS}/free-space-ratio", "FreeSpaceRatioNotValid"),
    (mounted(free_space_ratio=0.1), f"{OPTIONS}/free-space-ratio", "InvalidType"),
    (mounted(metrics="a,allow_other"), f"{OPTIONS}/metrics", "MountOptionNotValid"),
    (mounted(sub_dir="a b"), f"{OPTIONS}/sub-dir", "MountOptionNotValid"),
    (mounted(sub_dir="../other"), f"{OPTIONS}/sub-dir", "PathNotValid"),
    (mounted(prefetch=-1), f"{OPTIONS}/prefetch", "OutOfRange"),
    (mounted(cache_size=2**43), f"{OPTIONS}/cache-size", "OutOfRange"),
    (mounted(chache_size=1), f"{OPTIONS}/chache-size", "UnknownField"),
    (mounted(cache_dir=""), f"{OPTIONS}/cache-dir", "CacheDirNotValid"),
    (mounted(cache_dir=":"), f"{OPTIONS}/cache-dir", "CacheDirNotValid"),
    (mounted(cache_dir="cache"), f"{OPTIONS}/cache-dir", "CacheDirNotValid"),
    (mounted(cache_dir="/data/../etc"), f"{OPTIONS}/cache-dir", "CacheDirNotValid"),
    (a_set(cache={"levels": []}), LEVELS, "TooShort"),
    (levelled(level(medium="TAPE")), f"{LEVELS}/0/mediumType", "InvalidValue"),
    (levelled(level(medium="")), f"{LEVELS}/0/mediumType", "InvalidValue"),
    (levelled(level("")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level(cacheSize=-1)), f"{LEVELS}/0/cacheSize", "OutOfRange"),
    (levelled(level(":")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level("/data/c,allow_other")), f"{LEVELS}/0/path", "MountOptionNotValid"),
    (levelled(level("/data/*")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level("/")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level("/etc")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level("/var")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level("/var/lib/kubelet/pods")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level("/dev")), f"{LEVELS}/0/path", "CacheDirNotValid"),
    (levelled(level(), level("/ok:/data/cache/b")), "/spec", "CacheDirNotValid"),
    (levelled(level("/a:/a-b:/a/c")), "/spec", "CacheDirNotValid"),
    (levelled(level("/a:/a/")), "/spec", "CacheDirNotValid"),
    (a_set(tolerations=[{"key": "gpu", "operator": "Maybe"}]), "/spec/tolerations/0/operator", "NotSupported"),
    (a_set(tolerations=[{"value": "x"}]), "/spec/tolerations/0/operator", "Invalid"),
    (a_set(nodeAffinity={"required": {}}), "/spec/nodeAffinity/required", "UnknownField"),
    (a_set(nodeAffinity="gpu"), "/spec/nodeAffinity", "InvalidType"),
]


@pytest.mark.parametrize(("manifest", "pointer", "code"), REFUSED)
def test_invalid_specs_are_refused(manifest: Manifest, pointer: str, code: str) -> None:
    (error,) = errors_of(manifest)
    assert (error.pointer, error.code) == (pointer, code)
    assert error.accepted or code in ("Invalid", "InvalidName")


UPSTREAM = [
    (a_set(secretRef=None), "spec.secretRef should not be empty"),
    (a_set(secretRef={}), "spec.secretRef.name is not set"),
    (a_set(source=None), "data source cannot be empty"),
    (a_set(source={"uri": "bucket/of/data"}), "the format of data source uri is not support"),
    (a_set(source={"uri": "ftp://host/data"}), "the object storage ftp of is not support"),
    (a_set(csi={"driver": "alluxio"}), "driver alluxio not found"),
    (mounted(free_space_ratio="much"), "parse free-space-ratio:much error"),
    (mounted(free_space_ratio="1.5"), "free-space-ratio:1.5 is not valid"),
    (levelled(level(":")), "cache-dir is not valid"),
]


@pytest.mark.parametrize(("manifest", "words"), UPSTREAM)
def test_messages_are_upstreams(manifest: Manifest, words: str) -> None:
    (error,) = errors_of(manifest)
    assert error.detail == words


ACCEPTED = [
    a_set("a" * 44),
    a_set(source=None, noSync=True),
    a_set(source={"uri": "s3://bucke"}),
    a_set(source={"uri": "just/a/bucket"}, noSync=True),
    a_set(source={"uri": "file:///data/in@put:x"}),
    a_set(source={"uri": "hdfs://user@host.example.com:8020/data"}),
    a_set(source={"uri": "minio://192.88.99.1:9000/bucket/a@b"}),
    a_set(source={"uri": "s3://bucket/x", "secretRef": {"name": "none"}}),
    a_set(secretRef={"name": "a", "namespace": "team"}),
    a_set(csi=None, cache=None),
    mounted(free_space_ratio="0"),
    mounted(free_space_ratio="1e-1"),
    mounted(cache_size=2**43 - 1),
    mounted(cache_dir="/data:/ssd", sub_dir="/train", writeback=False),
    levelled(level("/dev/shm/cache"), level("/mnt/a:/mnt/b", "HDD", cacheSize=0)),
    levelled({"mediumType": "MEM"}),
    levelled({"mediumType": "MEM", "path": None, "cacheSize": 1}),
    levelled({"path": "/ssd"}),
    levelled(level(medium=None)),
    a_set(cache={}),
    a_set(source={}, noSync=True),
    a_set(cache={"levels": None}),
    a_set(tolerations=[{"key": "gpu", "operator": "Exists"}]),
]


@pytest.mark.parametrize("manifest", ACCEPTED)
def test_accepted_specs_are_stored_unchanged(manifest: Manifest) -> None:
    accepted = SAMPLE_SET.accept(manifest, LIMITS)
    assert SAMPLE_SET.accept(accepted, LIMITS) == accepted


def test_all_errors_are_reported_together() -> None:
    manifest = a_set("x" * 50, partitions="2", secretRef=None, csi={"driver": "x"}, tolerations=[{"value": "x"}])
    assert [error.code for error in errors_of(manifest)] == [
        "InvalidType",
        "NameTooLong",
        "SecretRefEmpty",
        "DriverNotFound",
        "Invalid",
    ]


def test_what_is_wrong_in_an_optional_part_does_not_hide_the_rest() -> None:
    manifest = a_set(secretRef={"name": 1}, source={"uri": "bucket/of/data"}, noSync="no")
    assert {(error.pointer, error.code) for error in errors_of(manifest)} == {
        ("/spec/secretRef/name", "InvalidType"),
        ("/spec/noSync", "InvalidType"),
        ("/spec/source/uri", "DataSourceFormat"),
    }


def test_cache_roots_are_configurable() -> None:
    limits = replace(LIMITS, cache_roots=("/ssd/", "/home/cache"))
    SAMPLE_SET.accept(levelled(level("/ssd/a:/home/cache")), limits)
    (error,) = errors_of(levelled(level("/data/cache")), limits)
    assert (error.code, error.accepted) == ("CacheDirNotValid", "an absolute path in one of /ssd/, /home/cache")


@pytest.mark.parametrize(
    "directory",
    [
        "/",
        "/dev/shm",
        "/opt",
        "/opt/cache",
        "/var/spool/cron",
        "/mnt",
        "/var/cache",
        "/var/cache/jobgate-other",
        "/tmp",
    ],
)
def test_a_set_may_only_name_directories_for_caches(directory: str) -> None:
    limits = CacheLimits(namespace="team")
    for manifest in (levelled(level(directory)), mounted(cache_dir=directory)):
        (error,) = errors_of(manifest, limits)
        assert error.code == "CacheDirNotValid"
        assert error.accepted == "an absolute path in one of /dev/shm/jobgate, /var/cache/jobgate"


@pytest.mark.parametrize("directory", ["/dev/shm/jobgate", "/dev/shm/jobgate/a", "/var/cache/jobgate/a//b/"])
def test_the_directories_for_caches(directory: str) -> None:
    limits = CacheLimits(namespace="team")
    SAMPLE_SET.accept(levelled(level(directory)), limits)
    SAMPLE_SET.accept(mounted(cache_dir=directory), limits)


def test_the_default_directory_must_be_one_for_caches() -> None:
    assert SAMPLE_SET.accept(a_set(), CacheLimits(namespace="team"))
    limits = CacheLimits(namespace="team", cache_roots=("/ssd",))
    (error,) = errors_of(a_set(), limits)
    assert (error.pointer, error.code) == ("/spec", "CacheDirNotValid")
    assert SAMPLE_SET.accept(levelled(level("/ssd/a")), limits)
    assert errors_of(a_set(), CacheLimits(namespace="team", cache_roots=()))


@pytest.mark.parametrize(
    ("roots", "directory", "accepted"),
    [
        (("/",), "/opt/cache", True),
        (("/",), "/var/lib/kubelet/a", False),
        (("/",), "/dev/shm", False),
        (("/", "/dev/shm"), "/dev/shm", True),
        (("/var",), "/var/cache/x", True),
        (("/var",), "/var/lib", False),
        (("/var/lib/kubelet/caches",), "/var/lib/kubelet/caches/a", True),
    ],
)
def test_a_system_directory_needs_a_root_inside_it(roots: tuple[str, ...], directory: str, *, accepted: bool) -> None:
    manifest, limits = levelled(level(directory)), CacheLimits(namespace="team", cache_roots=roots)
    if accepted:
        assert SAMPLE_SET.accept(manifest, limits)
    else:
        assert [error.code for error in errors_of(manifest, limits)] == ["CacheDirNotValid"]


def test_a_stored_source_that_is_not_allowed_any_more_may_stay() -> None:
    limits = replace(LIMITS, sources=SourceLimits(schemes=frozenset({"gs"})))
    (error,) = errors_of(a_set(), limits)
    assert (error.pointer, error.code) == ("/spec/source/uri", "SourceNotAllowed")
    limits = replace(limits, stored_source=a_set()["spec"]["source"]["uri"])
    assert SAMPLE_SET.accept(a_set(), limits)
    assert errors_of(a_set(source={"uri": "s3://other.example.com"}), limits)


def test_secrets_of_configured_namespaces_are_accepted() -> None:
    manifest = a_set(secretRef={"name": "a", "namespace": "shared"})
    SAMPLE_SET.accept(manifest, replace(LIMITS, secret_namespaces=frozenset({"shared"})))
    (error,) = errors_of(manifest)
    assert error.accepted == "team"


def test_annotations_for_jobs_are_refused() -> None:
    manifest = a_set()
    manifest["metadata"]["annotations"] = {"jobgate.dev/autoscale": "true"}
    assert [error.code for error in errors_of(manifest)] == ["NotSupported"]


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"partitions": 5}, []),
        ({"noSync": True}, []),
        ({"source": {"uri": "s3://other.example.com"}}, []),
        ({"secretRef": {"name": "other"}}, []),
        ({"cache": {"levels": [level()]}}, ["/spec/cache"]),
        ({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, ["/spec/tolerations"]),
        ({"csi": {"juiceFSMountOptions": {"writeback": True}}}, ["/spec/csi/juiceFSMountOptions"]),
    ],
)
def test_what_may_be_changed(change: Manifest, refused: list[str]) -> None:
    stored, new = SAMPLE_SET.accept(a_set(), LIMITS), SAMPLE_SET.accept(a_set(**change), LIMITS)
    assert [error.pointer for error in SAMPLE_SET.changes(stored, new)] == refused


def test_the_schema_names_every_field() -> None:
    schema = SAMPLE_SET.json_schema()
    assert schema["properties"]["spec"]["properties"].keys() == {
        "partitions",
        "source",
        "secretRef",
        "noSync",
        "csi",
        "cache",
        "nodeAffinity",
        "tolerations",
    }
    assert "free-space-ratio" in schema["$defs"]["JuiceFSMountOptions"]["properties"]
    assert schema["$defs"]["CacheLevel"]["properties"]["mediumType"]["enum"] == ["MEM", "SSD", "HDD"]


SYSTEM = (
    *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys"),
    "/usr",
    *("/var", "/var/lib", "/var/lib/containerd", "/var/lib/docker", "/var/lib/etcd", "/var/lib/kubelet", "/var/log"),
)


@pytest.mark.parametrize("directory", SYSTEM)
def test_no_cache_is_in_a_directory_of_the_system(directory: str) -> None:
    for manifest in (levelled(level(directory)), mounted(cache_dir=directory)):
        (error,) = errors_of(manifest)
        assert error.code == "CacheDirNotValid"


@settings(UNHURRIED, max_examples=150)
@given(JSON_VALUES)
def test_any_spec_is_accepted_or_refused(value: Any) -> None:
    manifest = {**a_set(), "spec": value}
    try:
        accepted = SAMPLE_SET.accept(manifest, LIMITS)
    except InvalidManifest as refused:
        assert refused.errors  # noqa: PT017
    else:
        assert SAMPLE_SET.accept(accepted, LIMITS) == accepted


@settings(UNHURRIED, max_examples=150)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "partitions": st.one_of(st.integers(-1, 3), JSON_VALUES),
            "source": st.one_of(st.fixed_dictionaries({"uri": st.text()}), JSON_VALUES),
            "secretRef": st.one_of(st.fixed_dictionaries({"name": st.text()}), JSON_VALUES),
            "csi": st.one_of(st.fixed_dictionaries({"juiceFSMountOptions": JSON_VALUES}), JSON_VALUES),
            "cache": st.one_of(st.fixed_dictionaries({"levels": st.lists(JSON_VALUES)}), JSON_VALUES),
            "tolerations": JSON_VALUES,
            "nodeAffinity": JSON_VALUES,
        },
    )
)
def test_any_fields_are_accepted_or_refused(spec: Manifest) -> None:
    try:
        SAMPLE_SET.accept({**a_set(), "spec": spec}, LIMITS)
    except InvalidManifest as refused:
        assert refused.errors  # noqa: PT017
