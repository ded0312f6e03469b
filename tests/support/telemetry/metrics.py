"""The metrics that the code defines, those that an exposition has, and those that expressions of PromQL name."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[3]
_SERIES: Final = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
_KEYWORDS: Final = frozenset({"and", "or", "unless", "bool", "offset"})
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR: Final = re.compile(r"\{([^}]*)\}")
_STRING: Final = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class DefinedMetric:
    """`name` is that in expressions: of a counter with `_total`, of a histogram without the suffixes of its series."""

    name: str
    type: str
    labels: tuple[str, ...]
    text: str

    @property
    def series(self) -> set[str]:
        base = self.name.removesuffix("_total") if self.type == "counter" else self.name
        return {base + suffix for suffix in _SERIES[self.type]}


def defined_metrics() -> list[DefinedMetric]:
    """Every metric of the code, from the calls that make them."""
    paths = [ROOT / "app" / "base" / "instruments.py", *sorted((ROOT / "app").rglob("metrics.py"))]
    calls = (node for path in paths for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return sorted(found for call in calls if (found := _defined(call)) is not None)


def _defined(call: ast.Call) -> DefinedMetric | None:
    made = call.func.id if isinstance(call.func, ast.Name) else ""
    if made not in {"Counter", "Gauge", "Histogram", "Info", "ComputedMetric"}:
        return None
    given = [ast.literal_eval(argument) for argument in call.args]
    kind, name, text, labels = (
        (given[0], *given[1:3], given[3:]) if made == "ComputedMetric" else (made.lower(), *given[:2], given[2:])
    )
    if made == "Info":
        kind, name, labels = "gauge", f"{name}_info", [("version",)]
    return DefinedMetric(name=name, type=kind, labels=labels[0] if labels else (), text=text)


def exposed_metrics(exposition: str) -> dict[str, DefinedMetric]:
    """The metrics of jobgate in the text of /metrics. Those without samples have no labels."""
    found = {}
    for family in text_string_to_metric_families(exposition):
        if family.name.startswith("jobgate_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = {label for sample in family.samples for label in sample.labels} - {"le", "process"}
            found[name] = DefinedMetric(
                name=name, type=family.type, labels=tuple(sorted(labels)), text=family.documentation
            )
    return found


def metric_names(expression: str) -> set[str]:
    """The series that an expression of PromQL reads."""
    text = _GROUPING.sub(" ", _SELECTOR.sub(" ", _STRING.sub('""', expression)))
    text = re.sub(r"\[[^\]]*\]", " ", text)
    return set(re.findall(r"\b[a-zA-Z_]\w*\b(?!\s*\()", text)) - _KEYWORDS


def label_names(expression: str) -> set[str]:
    """The labels that the selectors and groupings of an expression name."""
    text = _STRING.sub('""', expression)
    matched = {label for selector in _SELECTOR.findall(text) for label in re.findall(r"(\w+)\s*(?:=|!)", selector)}
    return matched | {label for group in _GROUPING.findall(text) for label in re.findall(r"\w+", group)}


def value(series: str, **labels: str) -> float:
    """The value of a series of this process, or 0 without the series."""
    return REGISTRY.get_sample_value(series, labels) or 0.0


def table_rows(metrics: list[DefinedMetric]) -> Iterator[str]:
    """The rows of docs/metrics.md."""
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.type} | {labels} | {metric.text} |"
