"""What upstream's types answer about a job's size: its own vectors, and ours."""

import json

import pytest

from app.domain.dialects.training_job import elasticity
from app.domain.dialects.training_job.spec import TrainingJobSpec
from app.domain.plan import Manifest

GPU = "alpha.kubernetes.io/nvidia-gpu"


def sized(least: int, most: int) -> TrainingJobSpec:
    return TrainingJobSpec.model_validate({"trainer": {"min-instance": least, "max-instance": most}})


def limited(part: str = "limits", /, **amounts: str | float) -> TrainingJobSpec:
    resources = {part: {GPU if name == "gpu" else name: amount for name, amount in amounts.items()}}
    return TrainingJobSpec.model_validate({"trainer": {"resources": resources}})


@pytest.mark.parametrize(("least", "most", "expected"), [(1, 2, True), (2, 2, False), (3, 2, False)])
def test_elastic(least: int, most: int, *, expected: bool) -> None:
    assert elasticity.elastic(sized(least, most)) is expected


@pytest.mark.parametrize(
    ("least", "most", "parallelism", "expected"),
    [(1, 2, 2, 1), (1, 2, 1, 0), (1, 3, 2, 0.5), (1, 1, 1, 1), (2, 2, 9, 1), (1, 3, 5, 2), (2, 4, 1, -0.5)],
)
def test_fulfillment(least: int, most: int, parallelism: int, expected: float) -> None:
    assert elasticity.fulfillment(sized(least, most), parallelism) == expected


@pytest.mark.parametrize(
    ("spec", "gpu", "limit"),
    [
        (limited(), 0, 0),
        (limited(gpu=2), 2, 2),
        (limited(gpu="2"), 2, 2),
        (limited(gpu="1k"), 1000, 1000),
        (limited(gpu="1500m"), 0, 2),
        (limited(gpu="10E"), 0, 10**19),
        (limited(gpu="many"), 0, 0),
        (limited("requests", gpu=2), 0, 0),
        (limited(**{"nvidia.com/gpu": 3}), 3, 3),
    ],
)
def test_gpus(spec: TrainingJobSpec, gpu: int, limit: int) -> None:
    assert elasticity.gpu(spec) == gpu
    assert elasticity.need_gpu(spec) is (gpu > 0)
    assert elasticity.trainer_gpu_limit(spec) == limit


@pytest.mark.parametrize(
    ("cpu", "milli"), [("1k", 1_000_000), ("1", 1000), (2, 2000), (0.5, 500), ("250m", 250), ("100u", 1), (None, 0)]
)
def test_cpu_requests_are_thousandths(cpu: str | float | None, milli: int) -> None:
    spec = limited("requests", **({} if cpu is None else {"cpu": cpu}))
    assert elasticity.trainer_cpu_request_milli(spec) == milli


@pytest.mark.parametrize(
    ("memory", "mega"), [("100Mi", 105), ("100M", 100), ("1Gi", 1074), ("1", 1), ("1k", 1), (None, 0)]
)
def test_memory_requests_are_units_of_a_million_bytes(memory: str | None, mega: int) -> None:
    spec = limited("requests", **({} if memory is None else {"memory": memory}))
    assert elasticity.trainer_mem_request_mega(spec) == mega


def test_text() -> None:
    job: Manifest = {"spec": {"image": "a<b>&c", "n": [1, "é"]}}
    text = elasticity.to_text(job)
    assert text.startswith('{\n   "spec": {\n      "image": "a\\u003cb\\u003e\\u0026c",\n')
    assert json.loads(text) == job
