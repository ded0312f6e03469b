"""The manifests of upstream's tutorial and chart are accepted unchanged and give valid objects and options."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.cache.job_options import clear_options, rmr_options, sync_options, warmup_options
from app.domain.cache.limits import ANY_CACHE_ROOTS, CacheLimits
from app.domain.cache.manifests.stateful_set import runtime_stateful_set
from app.domain.cache.manifests.storage import persistent_volume
from app.domain.cache.values import SecretValues, SetIdentity
from app.domain.cache.vocabulary import JobType
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.kinds.samples.specs.secret_refs import resolve_ref
from app.domain.plan import Manifest
from tests.domain.cache.made import SITE

NAMESPACE = "paddle-system"
SOURCE = "bos://paddleflow-public.hkg.bcebos.com/imagenet"
IDENTITY = SetIdentity(uid="4b9ee1f2", namespace=NAMESPACE, name="imagenet", installation="one")
# Redis is both the volume's storage and its metadata there, and has no password.
REDIS = {"name": "imagenet", "storage": "redis", "bucket": "redis://10.0.0.7:6379/1", "metaurl": "redis://10.0.0.7/0"}


def an_example(kind: str, name: str, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": {"helm.sh/hook": "test"}}
    return {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def a_set(**spec: Any) -> Manifest:
    return an_example(
        "SampleSet", "imagenet", partitions=1, source={"uri": SOURCE}, secretRef={"name": "imagenet"}, **spec
    )


def a_job(kind: str, **spec: Any) -> Manifest:
    return an_example("SampleJob", f"imagenet-{kind}", type=kind, sampleSetRef={"name": "imagenet"}, **spec)


LEVEL = {"mediumType": "MEM", "path": "/dev/shm/cache", "cacheSize": 1024}
SETS = {
    "the tutorial's": a_set(),
    "with a cache level": a_set(cache={"levels": [LEVEL]}),
    # Its source is public, and has a Secret of its own that lacks keys.
    "the chart's": a_set() | {"spec": a_set()["spec"] | {"source": {"uri": SOURCE, "secretRef": {"name": "none"}}}},
}
JOBS = {
    "rmr": (a_job("rmr", rmrOptions={"paths": ["n01514859"]}), {"paths": ["/mnt/imagenet/n01514859"]}),
    "sync": (
        a_job("sync", secretRef={"name": "imagenet"}, syncOptions={"source": SOURCE}),
        {"source": f"{SOURCE}/", "destination": "file:///mnt/imagenet/"},
    ),
    "clear": (a_job("clear"), {"paths": ["/cache/dev-shm-jobgate/*"]}),
    "warmup": (a_job("warmup"), {"paths": ["/mnt/imagenet"], "partitions": 1, "strategyName": "sequence"}),
}


def set_spec(manifest: Manifest) -> SampleSetSpec:
    accepted = SAMPLE_SET.accept(manifest, CacheLimits(namespace=NAMESPACE, cache_roots=ANY_CACHE_ROOTS))
    assert {**manifest["spec"], **accepted["spec"]}.keys() == accepted["spec"].keys()
    return SampleSetSpec.model_validate(accepted["spec"])


def a_pv(spec: SampleSetSpec) -> Manifest:
    return persistent_volume(
        IDENTITY, spec, SecretValues(name="imagenet", namespace=NAMESPACE, data=REDIS), SITE.sources
    )


@pytest.mark.parametrize("manifest", SETS.values(), ids=SETS)
def test_a_set_is_accepted_and_can_be_made(manifest: Manifest) -> None:
    spec = set_spec(manifest)
    assert spec.source
    place = resolve_ref(spec.source.secret_ref or spec.secret_ref, spec.secret_ref, NAMESPACE)  # type: ignore[arg-type]
    assert place == (NAMESPACE, "none" if spec.source.secret_ref else "imagenet")
    made = runtime_stateful_set(IDENTITY, spec, a_pv(spec), SITE)
    assert made["spec"]["replicas"] == 1


@pytest.mark.parametrize(("manifest", "options"), JOBS.values(), ids=JOBS)
def test_a_job_is_accepted_and_can_be_posted(manifest: Manifest, options: Manifest) -> None:
    job = SampleJobSpec.model_validate(
        SAMPLE_JOB.accept(manifest, CacheLimits(namespace=NAMESPACE, cache_roots=ANY_CACHE_ROOTS))["spec"]
    )
    spec = set_spec(a_set())
    runtime = runtime_stateful_set(IDENTITY, spec, a_pv(spec), SITE)
    made = {
        JobType.SYNC: lambda: sync_options(IDENTITY, spec, job, None, SITE),
        JobType.WARMUP: lambda: warmup_options(IDENTITY, spec, job, SITE),
        JobType.RMR: lambda: rmr_options(IDENTITY, job, SITE),
        JobType.CLEAR: lambda: clear_options(IDENTITY, job, runtime),
    }[JobType(job.type)]()
    assert made.option_file() == options


def test_the_tutorials_secret_without_keys_is_enough() -> None:
    spec = set_spec(a_set())
    secret = SecretValues(name="imagenet", namespace=NAMESPACE, data=REDIS)
    assert sync_options(IDENTITY, spec, None, secret, SITE).option_file()["source"] == f"{SOURCE}/"
    with_keys = replace(secret, data={**REDIS, "access-key": "ak", "secret-key": "sk"})
    made = sync_options(IDENTITY, spec, None, with_keys, SITE).option_file()
    assert made["source"] == f"{SOURCE.replace('://', '://ak:sk@')}/"
