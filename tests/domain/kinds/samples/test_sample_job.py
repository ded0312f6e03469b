"""The validation of SampleJobs."""

from typing import Any

import pytest
from hypothesis import given, settings

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.samples.kinds import SAMPLE_JOB
from app.domain.plan import Manifest
from tests.domain.cache.made import LIMITS, a_job
from tests.support.json_values import JSON_VALUES, UNHURRIED

SECRET = {"secretRef": {"name": "source"}}


def errors_of(manifest: Manifest) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidManifest) as refused:
        SAMPLE_JOB.accept(manifest, LIMITS)
    return refused.value.errors


REFUSED: list[tuple[Manifest, str, str]] = [
    (a_job(None), "/spec/type", "Required"),
    (a_job("format"), "/spec/type", "JobTypeNotSupported"),
    (a_job(1), "/spec/type", "InvalidType"),
    (a_job(sampleSetRef=None), "/spec/sampleSetRef/name", "SampleSetRefEmpty"),
    (a_job(sampleSetRef={}), "/spec/sampleSetRef/name", "SampleSetRefEmpty"),
    (a_job(sampleSetRef={"name": "a" * 45}), "/spec/sampleSetRef/name", "NameTooLong"),
    (a_job("sync"), "/spec/secretRef", "SecretRefEmpty"),
    (a_job("sync", secretRef={}), "/spec/secretRef/name", "SecretRefNameEmpty"),
    (a_job("sync", secretRef={"name": "a", "namespace": "b"}), "/spec/secretRef/namespace", "SecretNamespace"),
    (a_job("sync", **SECRET, syncOptions={"source": "ftp://a"}), "/spec/syncOptions/source", "StorageNotSupported"),
    (a_job("sync", **SECRET, syncOptions={"source": "a"}), "/spec/syncOptions/source", "DataSourceFormat"),
    (
        a_job("sync", **SECRET, syncOptions={"source": "s3://a:b@c"}),
        "/spec/syncOptions/source",
        "CredentialsInSource",
    ),
    (
        a_job("sync", **SECRET, syncOptions={"destination": "a/../../b"}),
        "/spec/syncOptions/destination",
        "PathNotValid",
    ),
    (
        a_job("sync", **SECRET, syncOptions={"worker": "10.0.0.1,-oProxyCommand=x"}),
        "/spec/syncOptions/worker",
        "WorkerNotValid",
    ),
    (a_job("sync", **SECRET, syncOptions={"thread": 1}), "/spec/syncOptions/thread", "UnknownField"),
    (a_job("sync", **SECRET, syncOptions={"threads": -1}), "/spec/syncOptions/threads", "OutOfRange"),
    (a_job("sync", **SECRET, syncOptions={"http-port": 65536}), "/spec/syncOptions/http-port", "OutOfRange"),
    (a_job(warmupOptions={"paths": []}), "/spec/warmupOptions/paths", "TooShort"),
    (a_job(warmupOptions={"paths": ["a", ".."]}), "/spec/warmupOptions/paths/1", "PathNotValid"),
    (a_job(warmupOptions={"paths": ["a\n"]}), "/spec/warmupOptions/paths/0", "PathNotValid"),
    (a_job(warmupOptions={"partitions": 0}), "/spec/warmupOptions/partitions", "OutOfRange"),
    (a_job(warmupOptions={"partitions": 2**31}), "/spec/warmupOptions/partitions", "OutOfRange"),
    (a_job(warmupOptions={"strategyName": "best"}), "/spec/warmupOptions/strategyName", "InvalidValue"),
    (a_job(warmupOptions={"strategyName": ""}), "/spec/warmupOptions/strategyName", "InvalidValue"),
    (a_job(rmrOptions={"paths": []}), "/spec/rmrOptions/paths", "RmrPathsEmpty"),
    (a_job(warmupOptions={"file": "../list"}), "/spec/warmupOptions/file", "PathNotValid"),
    (a_job(warmupOptions={"file": "/"}), "/spec/warmupOptions/file", "WholeVolume"),
    (a_job("rmr"), "/spec/rmrOptions", "RmrOptionsEmpty"),
    (a_job("rmr", rmrOptions={}), "/spec/rmrOptions/paths", "RmrPathsEmpty"),
    (a_job("rmr", rmrOptions={"paths": []}), "/spec/rmrOptions/paths", "RmrPathsEmpty"),
    (a_job("rmr", rmrOptions={"paths": "a"}), "/spec/rmrOptions/paths", "InvalidType"),
    (a_job("rmr", rmrOptions={"paths": ["a", "b/../c"]}), "/spec/rmrOptions/paths/1", "PathNotValid"),
    (a_job("rmr", rmrOptions={"paths": ["./"]}), "/spec/rmrOptions/paths/0", "WholeVolume"),
    (a_job("rmr", rmrOptions={"paths": ["x" * 4097]}), "/spec/rmrOptions/paths/0", "PathNotValid"),
    (a_job("clear", clearOptions={"paths": []}), "/spec/clearOptions/paths", "TooShort"),
]


@pytest.mark.parametrize(("manifest", "pointer", "code"), REFUSED)
def test_invalid_specs_are_refused(manifest: Manifest, pointer: str, code: str) -> None:
    (error,) = errors_of(manifest)
    assert (error.pointer, error.code) == (pointer, code)
    assert error.accepted


UPSTREAM = [
    (a_job("rmr"), "the options of rmr job cannot be empty"),
    (a_job("sync"), "spec.secretRef should not be empty"),
    (a_job("sync", secretRef={}), "spec.secretRef.name is not set"),
]


@pytest.mark.parametrize(("manifest", "words"), UPSTREAM)
def test_messages_are_upstreams(manifest: Manifest, words: str) -> None:
    (error,) = errors_of(manifest)
    assert error.detail == words


ACCEPTED = [
    a_job("sync", **SECRET),
    a_job("sync", **SECRET, syncOptions={"source": "s3://b", "destination": "/", "threads": 0, "force-update": True}),
    a_job("warmup"),
    a_job("warmup", terminate=True, warmupOptions={"paths": ["/a", "b..c"], "partitions": 3, "file": "lists/a"}),
    a_job("warmup", warmupOptions={"partitions": 2**31 - 1}),
    a_job("rmr", rmrOptions={"paths": ["a", "/b/"]}),
    a_job("warmup", secretRef={}),
    a_job("warmup", secretRef={"name": "a", "namespace": "b"}),
    a_job("warmup", rmrOptions={}),
    a_job("clear"),
    a_job("clear", clearOptions={}),
    a_job("clear", clearOptions={"paths": ["/dev/shm/team/imagenet"]}),
]


@pytest.mark.parametrize("manifest", ACCEPTED)
def test_accepted_specs_are_stored_unchanged(manifest: Manifest) -> None:
    accepted = SAMPLE_JOB.accept(manifest, LIMITS)
    assert SAMPLE_JOB.accept(accepted, LIMITS) == accepted


def test_a_minimal_manifest_gets_defaults() -> None:
    manifest = a_job("warmup", warmupOptions={})
    assert SAMPLE_JOB.accept(manifest, LIMITS)["spec"] == {
        "type": "warmup",
        "sampleSetRef": {"name": "imagenet"},
        "terminate": False,
        "warmupOptions": {"strategyName": "sequence", "file": ""},
    }


def test_all_errors_are_reported_together() -> None:
    manifest = a_job("sync", sampleSetRef=None, secretRef={"name": 5}, rmrOptions={"paths": []}, terminate="yes")
    assert {error.pointer for error in errors_of(manifest)} == {
        "/spec/secretRef/name",
        "/spec/terminate",
        "/spec/sampleSetRef/name",
        "/spec/rmrOptions/paths",
    }


def test_type_and_set_are_immutable() -> None:
    stored = SAMPLE_JOB.accept(a_job("rmr", rmrOptions={"paths": ["a"]}), LIMITS)
    other = SAMPLE_JOB.accept(a_job("rmr", rmrOptions={"paths": ["b"]}, terminate=True, **SECRET), LIMITS)
    assert SAMPLE_JOB.changes(stored, other) == []
    other = SAMPLE_JOB.accept(a_job("clear", sampleSetRef={"name": "other"}), LIMITS)
    assert {error.pointer for error in SAMPLE_JOB.changes(stored, other)} == {
        "/spec/type",
        "/spec/sampleSetRef/name",
    }


def test_the_schema_has_juicefs_own_names() -> None:
    models = SAMPLE_JOB.json_schema()["$defs"]
    assert models["SyncOptions"]["properties"].keys() == {
        *("source", "destination", "start", "end", "threads", "http-port", "update", "force-update", "perms", "dirs"),
        *("dry", "delete-src", "delete-dst", "exclude", "include", "manager", "worker", "bwlimit", "no-https"),
    }
    assert models["WarmupOptions"]["properties"].keys() == {"paths", "partitions", "strategyName", "file", "threads"}


def test_the_schema_has_upstreams_choices() -> None:
    schema = SAMPLE_JOB.json_schema()
    assert schema["properties"]["spec"]["properties"]["type"]["enum"] == ["sync", "warmup", "rmr", "clear"]
    assert schema["$defs"]["WarmupOptions"]["properties"]["strategyName"]["enum"] == ["random", "sequence"]


@settings(UNHURRIED, max_examples=150)
@given(JSON_VALUES)
def test_any_options_are_accepted_or_refused(value: Any) -> None:
    try:
        SAMPLE_JOB.accept(a_job(value, syncOptions=value, warmupOptions=value, rmrOptions=value), LIMITS)
    except InvalidManifest as refused:
        assert refused.errors  # noqa: PT017
