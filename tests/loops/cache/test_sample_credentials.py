"""The Secret that a sync uses, and the reports about a missing one. No other Secret is read."""

import base64
from typing import Any

import pytest

from app.domain.cache.job_options import JobOptions
from app.domain.cache.reconcile.values import Complaint
from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.values import CacheSite, SetIdentity
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.kubernetes.objects import Metadata, Object
from app.k8s.errors import KubeForbidden, KubeNotFound
from app.loops.cache.observation import ClusterReader, Subject
from app.loops.controller_settings import SampleSettings

S3 = {"uri": "s3://b.example.com/train"}


class Secrets:
    """An API that serves Secrets and records which ones are read."""

    def __init__(self, *places: str) -> None:
        self.places = places
        self.read: list[str] = []

    async def get(self, _: Any, name: str, namespace: str, **__: Any) -> Object:
        place = f"{namespace}/{name}"
        self.read.append(place)
        if namespace == "closed":
            raise KubeForbidden(403, "Forbidden", "secrets are not for you")
        if place not in self.places:
            raise KubeNotFound(404, "NotFound", "there is none")
        keys = {"access-key": place.replace("/", "-"), "secret-key": "hush"}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in keys.items()}
        return Object(metadata=Metadata(name=name, namespace=namespace), raw={"data": {**data, "odd": "%%%"}})


def subject(**spec: Any) -> Subject:
    whole = {"partitions": 1, "secretRef": {"name": "volume"}, "source": S3, **spec}
    identity = SetIdentity(uid="u", namespace="team", name="imagenet", installation="one")
    return Subject(identity=identity, spec=SampleSetSpec.model_validate(whole), token="t")


def reader(secrets: Secrets) -> ClusterReader:
    settings = SampleSettings(
        site=CacheSite(sources=SourceLimits(directories=("/data",))), secret_namespaces=frozenset({"shared", "closed"})
    )
    return ClusterReader(secrets, settings, timeout=1)  # type: ignore[arg-type]


def source_of(made: JobOptions | Complaint) -> str:
    assert isinstance(made, JobOptions), made
    return str(made.option_file()["source"])


OF_A_SET = [
    ({}, "team/volume"),
    ({"secretRef": {"name": "volume", "namespace": "shared"}}, "shared/volume"),
    ({"source": {**S3, "secretRef": {"name": "own"}}}, "team/own"),
    ({"source": {**S3, "secretRef": {"namespace": "shared"}}}, "shared/volume"),
    (
        {
            "secretRef": {"name": "volume", "namespace": "shared"},
            "source": {**S3, "secretRef": {"name": "own", "namespace": "team"}},
        },
        "team/own",
    ),
]


@pytest.mark.parametrize(("spec", "place"), OF_A_SET)
async def test_a_sets_sync_uses_the_secret_of_the_source_or_of_the_volume(spec: dict[str, Any], place: str) -> None:
    secrets = Secrets(place)
    made = await reader(secrets).first_sync(subject(**spec))
    assert source_of(made) == f"s3://{place.replace('/', '-')}:hush@b.example.com/train/"
    assert secrets.read == [place]


@pytest.mark.parametrize(
    ("ref", "place"), [({"name": "own"}, "team/own"), ({"name": "own", "namespace": "shared"}, "shared/own")]
)
async def test_a_jobs_sync_uses_its_own_secret_only(ref: dict[str, str], place: str) -> None:
    secrets = Secrets(place, "team/volume")
    job = SampleJobSpec.model_validate({"type": "sync", "sampleSetRef": {"name": "imagenet"}, "secretRef": ref})
    made = await reader(secrets).job_options(subject(), job)
    assert source_of(made) == f"s3://{place.replace('/', '-')}:hush@b.example.com/train/"
    assert secrets.read == [place]


@pytest.mark.parametrize(
    ("kind", "more"), [("warmup", {}), ("rmr", {"rmrOptions": {"paths": ["a"]}}), ("sync", {"syncOptions": {}})]
)
async def test_no_secret_is_read_where_none_is_needed(kind: str, more: dict[str, Any]) -> None:
    secrets = Secrets()
    job = SampleJobSpec.model_validate(
        {"type": kind, "sampleSetRef": {"name": "imagenet"}, "secretRef": {"name": "own"}, **more}
    )
    made = await reader(secrets).job_options(subject(source={"uri": "file:///data"}), job)
    assert isinstance(made, JobOptions)
    assert secrets.read == []


REFUSED = [
    ({"secretRef": None}, "spec.secretRef.name is not set", []),
    ({"secretRef": {"name": ""}}, "spec.secretRef.name is not set", []),
    ({}, "secret volume is not exist", ["team/volume"]),
    (
        {"secretRef": {"name": "volume", "namespace": "other"}},
        "Secrets of the namespace other may not be used here",
        [],
    ),
    (
        {"secretRef": {"name": "volume", "namespace": "closed"}},
        "secret volume may not be read: secrets are not for you",
        ["closed/volume"],
    ),
]


@pytest.mark.parametrize(("spec", "words", "read"), REFUSED)
async def test_a_missing_secret_is_reported_with_upstreams_messages(
    spec: dict[str, Any], words: str, read: list[str]
) -> None:
    secrets = Secrets()
    made = await reader(secrets).first_sync(subject(**spec))
    assert made == Complaint(reason="ErrorSecretNotExist", message=words)
    assert secrets.read == read
    if spec.get("secretRef", ...) is None:
        volume = await reader(secrets).volume_secret(subject(**spec))
        assert volume == Complaint(reason="ErrorSecretNotExist", message="spec.secretRef should not be empty")
