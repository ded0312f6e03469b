"""The functions of Paddle EDL's types about the size of a job and the resources of its trainers.

fulfillment    where the size of a job is between min-instance and max-instance
GPU            the resource nvidia.com/gpu, or upstream's older alpha.kubernetes.io/nvidia-gpu
milli, mega    thousandths of a CPU; units of 10^6 bytes; both rounded up
"""

import json
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from app.domain.dialects.training_job.spec import TrainingJobSpec
from app.domain.errors import InvalidManifest
from app.domain.kubernetes.quantity import milli_cpu, parse_quantity, whole
from app.domain.plan import Manifest

GPU_RESOURCES: Final = ("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
_INT64_MAX: Final = 2**63 - 1
_MEGA: Final = Decimal(10**6)
# Go's JSON encoder escapes these characters, so that JSON is safe in HTML.
_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def elastic(spec: TrainingJobSpec) -> bool:
    """Return whether the number of trainers can change."""
    return spec.trainer.min_instance < spec.trainer.max_instance


def fulfillment(spec: TrainingJobSpec, parallelism: int) -> float:
    """Return (parallelism - min) / (max - min), which may be outside 0 to 1; 1 for a job of fixed size."""
    least, most = spec.trainer.min_instance, spec.trainer.max_instance
    return 1.0 if least == most else (parallelism - least) / (most - least)


def gpu(spec: TrainingJobSpec) -> int:
    """Return the GPUs of each trainer by its limits; 0 if the limit is not a whole number."""
    amount = gpu_amount(spec, "limits")
    return int(amount) if amount == amount.to_integral_value() and abs(amount) <= _INT64_MAX else 0


def need_gpu(spec: TrainingJobSpec) -> bool:
    return gpu(spec) > 0


def trainer_gpu_limit(spec: TrainingJobSpec) -> int:
    """Return the GPUs of each trainer, rounded up."""
    return whole(gpu_amount(spec, "limits"))


def trainer_cpu_request_milli(spec: TrainingJobSpec) -> int:
    return milli_cpu(amount_of(spec.trainer.resources, "requests", "cpu"))


def trainer_mem_request_mega(spec: TrainingJobSpec) -> int:
    """Return the memory request of each trainer in units of 10^6 bytes, rounded up: 105 for 100Mi."""
    return int((amount_of(spec.trainer.resources, "requests", "memory") / _MEGA).to_integral_value(ROUND_CEILING))


def to_text(job: Manifest) -> str:
    """Return the job as indented JSON, like upstream's String()."""
    text = json.dumps(job, indent=3, ensure_ascii=False)
    return "".join(_ESCAPES.get(character, character) for character in text)


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
