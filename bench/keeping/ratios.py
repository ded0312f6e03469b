"""How much slower requests are beside other work: from many short rounds that alternate."""

from collections.abc import Sequence
from random import Random
from statistics import median
from typing import Final, NamedTuple

from typing_extensions import override

_SAMPLES: Final = 2_000
_SEED: Final = 1  # the same rounds have the same interval
_OUTSIDE: Final = 0.05  # of the samples are below the interval, and as many above it


class Ratio(NamedTuple):
    """The ratio of two medians, and an interval that has nine of ten medians of resampled rounds."""

    value: float
    low: float
    high: float

    @override
    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio_of_medians(beside: Sequence[float], without: Sequence[float]) -> Ratio:
    """Return how many times as large the median of `beside` is. Medians ignore the rounds that something disturbs."""
    random = Random(_SEED)
    found = sorted(
        median(random.choices(beside, k=len(beside))) / median(random.choices(without, k=len(without)))
        for _ in range(_SAMPLES)
    )
    index = round(_OUTSIDE * _SAMPLES)
    return Ratio(median(beside) / median(without), found[index], found[-1 - index])
