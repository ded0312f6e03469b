"""Warnings about fields of valid SampleSets and SampleJobs that have no effect."""

from typing import Any

import pytest

from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.plan import JobWarning, Manifest
from app.domain.vocabulary import WarningSource
from tests.domain.cache.made import LIMITS, a_job, a_set

SECRET: Manifest = {"secretRef": {"name": "source"}}
LEVEL: Manifest = {"mediumType": "SSD", "cacheSize": 10}


@pytest.mark.parametrize(
    ("manifest", "pointers"),
    [
        (a_job(), []),
        (a_job("sync", **SECRET, syncOptions={}), []),
        (a_job("warmup", **SECRET), ["/spec/secretRef"]),
        (a_job("warmup", warmupOptions={"threads": 1}), []),
        (a_job("warmup", warmupOptions={"partitions": 2}), ["/spec/warmupOptions/partitions"]),
        (a_job("rmr", rmrOptions={"paths": ["a"]}, clearOptions={}), ["/spec/clearOptions"]),
        (a_job("clear", warmupOptions={"partitions": 2}, syncOptions={}), ["/spec/syncOptions", "/spec/warmupOptions"]),
    ],
)
def test_fields_about_another_type_of_job(manifest: Manifest, pointers: list[str]) -> None:
    found = SAMPLE_JOB.warnings(SAMPLE_JOB.accept(manifest, LIMITS), JobRecord())
    assert [one.pointer for one in found] == pointers


@pytest.mark.parametrize(
    ("spec", "pointers"),
    [
        ({}, []),
        ({"cache": {"levels": [LEVEL | {"path": "/mnt/a"}]}}, []),
        ({"cache": {"levels": [LEVEL | {"path": "/mnt/a"}, LEVEL]}}, ["/spec/cache/levels/1"]),
    ],
)
def test_levels_of_a_cache_without_a_path(spec: dict[str, Any], pointers: list[str]) -> None:
    manifest = SAMPLE_SET.accept(a_set(**spec), LIMITS)
    of_cluster = JobWarning(source=WarningSource.CLUSTER, message="old")
    found = SAMPLE_SET.warnings(manifest, SetRecord(warnings=(of_cluster,)))
    assert [one.pointer for one in found] == [*pointers, ""]
    assert found[-1] is of_cluster
