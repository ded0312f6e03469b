"""The functions of Paddle EDL's types about the size of a job and the resources of its trainers.

GPU is the resource nvidia.com/gpu, or upstream's older alpha.kubernetes.io/nvidia-gpu.
"""

from decimal import Decimal
from typing import Any, Final

from app.domain.errors import InvalidManifest
from app.domain.kinds.training_job.spec import TrainingJobSpec
from app.domain.kubernetes.quantity import parse_quantity, whole
from app.domain.plan import Manifest

GPU_RESOURCES: Final = ("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
_INT64_MAX: Final = 2**63 - 1


def elastic(spec: TrainingJobSpec) -> bool:
    """Return whether the number of trainers can change."""
    return spec.trainer.min_instance < spec.trainer.max_instance


def gpu(spec: TrainingJobSpec) -> int:
    """Return the GPUs of each trainer by its limits; 0 if the limit is not a whole number."""
    amount = gpu_amount(spec, "limits")
    return int(amount) if amount == amount.to_integral_value() and abs(amount) <= _INT64_MAX else 0


def need_gpu(spec: TrainingJobSpec) -> bool:
    return gpu(spec) > 0


def trainer_count(spec: TrainingJobSpec) -> int:
    """Return the number of devices that a trainer computes on: its GPUs if it has any, otherwise its cores, rounded up.

    As in Kubernetes, the limit is the default of the request. Upstream counts 0 without a request.
    """
    if need_gpu(spec):
        return whole(gpu_amount(spec, "requests") or gpu_amount(spec, "limits"))
    resources = spec.trainer.resources
    return whole(amount_of(resources, "requests", "cpu") or amount_of(resources, "limits", "cpu"))


def gpu_amount(spec: TrainingJobSpec, part: str) -> Decimal:
    amounts = (amount_of(spec.trainer.resources, part, name) for name in GPU_RESOURCES)
    return next((amount for amount in amounts if amount), Decimal(0))


def amount_of(resources: Manifest, part: str, name: str) -> Decimal:
    """Return a quantity of `resources`; 0 if it is absent or not valid. The validation of the pod reports the error."""
    amounts: Any = resources.get(part)
    amount = amounts.get(name) if isinstance(amounts, dict) else None
    # A bool is an int in Python.
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return Decimal(0)
    try:
        return parse_quantity(str(amount))
    except InvalidManifest:
        return Decimal(0)
