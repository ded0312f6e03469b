"""What usage costs, by the prices of an installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from app.domain.kubernetes.pod_requests import HUGE_PAGES
from app.domain.usage.holds import CPU
from app.domain.vocabulary import Use

_HOUR: Final = 3_600_000  # milliseconds
_GIB: Final = 2**30
_CENT: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The price of one hour by resource: of a core, of a GiB of memory, storage or huge pages, of one device or pod.

    `currency` is a word that is shown beside each cost.
    """

    currency: str
    hourly: Mapping[str, Decimal] = field(default_factory=dict)


def unit_of(resource: str) -> int:
    """Return how many of the amounts of a hold are one core, or one GiB, or one device."""
    if resource == CPU:
        return 1000
    return _GIB if resource in ("memory", "ephemeral-storage") or resource.startswith(HUGE_PAGES) else 1


def costs_of(sums: Mapping[str, Mapping[Use, int]], prices: Prices) -> dict[Use, Decimal]:
    """Return what the usage of each use costs. Resources without a price cost nothing."""
    costs = dict.fromkeys(Use, Decimal(0))
    for resource, uses in sums.items():
        price = prices.hourly.get(resource)
        if price is not None:
            for use, total in uses.items():
                costs[use] += price * total / (unit_of(resource) * _HOUR)
    return {use: cost.quantize(_CENT) for use, cost in costs.items()}
