"""What upstream's types answer about a job's size and its trainers' resources, as pure functions.

fulfillment    how far between min-instance and max-instance a job is
GPU            by the resource name of old, else by NVidia's present one, which upstream did not know
milli, mega    thousandths of a CPU; units of 10^6 bytes; rounded up
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
# Go's encoder writes these so that JSON may stand in HTML.
_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def elastic(spec: TrainingJobSpec) -> bool:
    """Whether the number of trainers may change."""
    return spec.trainer.min_instance < spec.trainer.max_instance


def fulfillment(spec: TrainingJobSpec, parallelism: int) -> float:
    """The share of what the job may have beyond its least; not clamped. A job of one size is fulfilled."""
    least, most = spec.trainer.min_instance, spec.trainer.max_instance
    return 1.0 if least == most else (parallelism - least) / (most - least)


def gpu(spec: TrainingJobSpec) -> int:
    """GPUs of each trainer by its limits; 0 for what is no whole number."""
    amount = gpu_amount(spec, "limits")
    return int(amount) if amount == amount.to_integral_value() and abs(amount) <= _INT64_MAX else 0


def need_gpu(spec: TrainingJobSpec) -> bool:
    return gpu(spec) > 0


def trainer_gpu_limit(spec: TrainingJobSpec) -> int:
    """GPUs of each trainer, parts of one rounded up."""
    return whole(gpu_amount(spec, "limits"))


def trainer_cpu_request_milli(spec: TrainingJobSpec) -> int:
    return milli_cpu(amount_of(spec.trainer.resources, "requests", "cpu"))


def trainer_mem_request_mega(spec: TrainingJobSpec) -> int:
    """100Mi are 105."""
    return int((amount_of(spec.trainer.resources, "requests", "memory") / _MEGA).to_integral_value(ROUND_CEILING))


def to_text(job: Manifest) -> str:
    """The job as indented JSON, as upstream's String() writes it."""
    text = json.dumps(job, indent=3, ensure_ascii=False)
    return "".join(_ESCAPES.get(character, character) for character in text)


def trainer_count(spec: TrainingJobSpec) -> int:
    """Devices that a trainer computes on: GPUs if it has any, else cores, parts of one rounded up.

    What is not requested is what is limited, as Kubernetes has it; upstream counts 0.
    """
    if need_gpu(spec):
        return whole(gpu_amount(spec, "requests") or gpu_amount(spec, "limits"))
    resources = spec.trainer.resources
    return whole(amount_of(resources, "requests", "cpu") or amount_of(resources, "limits", "cpu"))


def gpu_amount(spec: TrainingJobSpec, part: str) -> Decimal:
    amounts = (amount_of(spec.trainer.resources, part, name) for name in GPU_RESOURCES)
    return next((amount for amount in amounts if amount), Decimal(0))


def amount_of(resources: Manifest, part: str, name: str) -> Decimal:
    """A quantity; 0 when it is absent, or wrong, which the validation of the pod tells."""
    amounts: Any = resources.get(part)
    amount = amounts.get(name) if isinstance(amounts, dict) else None
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return Decimal(0)
    try:
        return parse_quantity(str(amount))
    except InvalidManifest:
        return Decimal(0)
