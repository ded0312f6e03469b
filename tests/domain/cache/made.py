"""Short constructors of sets, jobs and Secrets for tests."""

from typing import Any

from app.domain.cache.limits import ANY_CACHE_ROOTS, CacheLimits
from app.domain.cache.manifests.stateful_set import runtime_stateful_set
from app.domain.cache.manifests.storage import persistent_volume
from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.values import CacheSite, SecretValues, SetIdentity
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import API_VERSION, SampleSetSpec
from app.domain.plan import Manifest

SOURCES = SourceLimits(directories=("/data",))
SITE = CacheSite(runtime_image="example.com/jobgate:1")
LIMITS = CacheLimits(namespace="team", cache_roots=ANY_CACHE_ROOTS, sources=SOURCES)
IDENTITY = SetIdentity(uid="4b9ee1f2", namespace="team", name="imagenet", installation="one")
KEYS = {"name": "vol", "storage": "s3", "metaurl": "redis://meta/1", "bucket": "https://b.example.com"}


def a_set(name: str = "imagenet", **spec: Any) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "SampleSet",
        "metadata": {"name": name},
        "spec": {
            "partitions": 2,
            "source": {"uri": "s3://bucket.example.com/train"},
            "secretRef": {"name": "storage"},
            **spec,
        },
    }


def a_job(kind: Any = "warmup", **spec: Any) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "SampleJob",
        "metadata": {"name": "job"},
        "spec": {"type": kind, "sampleSetRef": {"name": "imagenet"}, **spec},
    }


def set_spec(**spec: Any) -> SampleSetSpec:
    return SampleSetSpec.model_validate(SAMPLE_SET.accept(a_set(**spec), LIMITS)["spec"])


def job_spec(kind: str, **spec: Any) -> SampleJobSpec:
    """Return the spec as stored, without validation."""
    return SampleJobSpec.model_validate(a_job(kind, **spec)["spec"])


def accepted_job(kind: str, **spec: Any) -> SampleJobSpec:
    return SampleJobSpec.model_validate(SAMPLE_JOB.accept(a_job(kind, **spec), LIMITS)["spec"])


def a_secret(name: str = "storage", **data: str) -> SecretValues:
    return SecretValues(name=name, namespace="team", data={**KEYS, **data})


def a_pv(spec: SampleSetSpec, identity: SetIdentity = IDENTITY) -> Manifest:
    return persistent_volume(identity, spec, a_secret(), SOURCES)


def a_runtime(spec: SampleSetSpec, identity: SetIdentity = IDENTITY) -> Manifest:
    return runtime_stateful_set(identity, spec, a_pv(spec, identity), SITE)
