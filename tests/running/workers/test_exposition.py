"""Metrics of several processes in one text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.running.workers.exposition import combine


def exposition(count: int, *, with_gauge: bool = False) -> str:
    registry = CollectorRegistry()
    Counter("requests_total", "Requests.", ("route",), registry=registry).labels('/a{b} "c"').inc(count)
    Histogram("seconds", "Seconds.", buckets=(1.0,), registry=registry).observe(count)
    if with_gauge:
        Gauge("epoch", "Epoch.", registry=registry).set(7)
    return generate_latest(registry).decode()


def test_each_sample_has_the_label_of_its_process() -> None:
    text = combine({"worker-0": exposition(2), "controller": exposition(5, with_gauge=True)})
    found = {
        (sample.name, sample.labels["process"]): (sample.value, sample.labels.get("route"))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_created", "_bucket"))
    }
    assert found == {
        ("requests_total", "worker-0"): (2.0, '/a{b} "c"'),
        ("requests_total", "controller"): (5.0, '/a{b} "c"'),
        ("seconds_count", "worker-0"): (1.0, None),
        ("seconds_count", "controller"): (1.0, None),
        ("seconds_sum", "worker-0"): (2.0, None),
        ("seconds_sum", "controller"): (5.0, None),
        ("epoch", "controller"): (7.0, None),
    }


def test_the_samples_of_a_metric_stay_together_below_one_head() -> None:
    text = combine({"worker-0": exposition(1), "worker-1": exposition(2)})
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert len(heads) == len(set(heads))
    names = [line.partition("{")[0] for line in text.splitlines() if line.startswith("requests_total")]
    assert names == ["requests_total"] * 2
    first = text.index("requests_total{")
    assert "#" not in text[first : text.index("requests_total{", first + 1)]


def test_without_a_process_there_is_no_metric() -> None:
    assert combine({}) == ""
