"""What upstream's types answer about a job's size: its own vectors, and ours."""

import pytest

from app.domain.kinds.training_job import elasticity
from app.domain.kinds.training_job.spec import TrainingJobSpec

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
    ("spec", "gpu"),
    [
        (limited(), 0),
        (limited(gpu=2), 2),
        (limited(gpu="2"), 2),
        (limited(gpu="1k"), 1000),
        (limited(gpu="1500m"), 0),
        (limited(gpu="10E"), 0),
        (limited(gpu="many"), 0),
        (limited("requests", gpu=2), 0),
        (limited(**{"nvidia.com/gpu": 3}), 3),
    ],
)
def test_gpus(spec: TrainingJobSpec, gpu: int) -> None:
    assert elasticity.gpu(spec) == gpu
    assert elasticity.need_gpu(spec) is (gpu > 0)
