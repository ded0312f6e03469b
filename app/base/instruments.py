"""What all metrics share: metrics that are computed at each scrape, and the bounds of histograms.

Each package defines its metrics in its module `metrics`, in the default registry of prometheus_client.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from prometheus_client import REGISTRY, Info, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from app.base.version import VERSION

# Each counter and histogram would have a second series, with the time of its creation, which nothing reads.
disable_created_metrics()
Info("jobgate_build", "The version of jobgate that this process runs.").info({"version": VERSION})

SHORT_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds for the steps of the gateway, from a statement of PostgreSQL to the longest back-off."""
LONG_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)
"""Bounds for the life of a job, from a tenth of a second to a day."""

Values: TypeAlias = Mapping[tuple[str, ...], float]
"""The values of a metric by the values of its labels. A metric without labels has the key `()`."""
ValueSource: TypeAlias = Callable[[], Values]


class ComputedMetric(Collector):
    """A gauge or counter whose values its owner computes at each scrape. Without an owner it has no samples.

    A value that a task sets would remain when the task hangs or has ended, and other processes would expose zero.
    """

    def __init__(self, kind: Literal["gauge", "counter"], name: str, text: str, labels: Sequence[str] = ()) -> None:
        self._family = GaugeMetricFamily if kind == "gauge" else CounterMetricFamily
        self._name = name
        self._text = text
        self._labels = labels
        self.sources: list[ValueSource] = []
        REGISTRY.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        yield self._family(self._name, self._text, labels=self._labels)

    @override
    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        # One process may run several gateways, as tests do. Prometheus refuses two samples with the same labels.
        values: dict[tuple[str, ...], float] = {}
        for source in self.sources:
            values.update(source())
        family = self._family(self._name, self._text, labels=self._labels)
        for labels, value in values.items():
            family.add_metric(labels, value)
        yield family


@contextmanager
def expose(sources: Mapping[ComputedMetric, ValueSource]) -> Iterator[None]:
    """Expose these values during the block. The sources must not raise: an error would end the whole scrape."""
    for metric, source in sources.items():
        metric.sources.append(source)
    try:
        yield
    finally:
        for metric, source in sources.items():
            metric.sources.remove(source)
