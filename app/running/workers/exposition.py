"""Combines the metrics of several processes into one text in the exposition format of Prometheus."""

from collections.abc import Mapping
from typing import Final

LABEL: Final = "process"
_HELP: Final = "# HELP "


def combine(expositions: Mapping[str, str]) -> str:
    """Return all samples, labelled with the name of their process. The samples of one metric stay together.

    Counters are not added up: the sum would fall when one process restarts, which Prometheus reads as a restart of all.
    """
    metrics: dict[str, list[str]] = {}
    for process, text in expositions.items():
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith(_HELP):
                lines = metrics.setdefault(line, [])
            elif line.startswith("#"):
                if line not in lines:
                    lines.append(line)
            else:
                lines.append(_add_label(line, process))
    return "".join(f"{line}\n" for head, lines in metrics.items() for line in (head, *lines))


def _add_label(sample: str, process: str) -> str:
    """Add the label of the process to a sample: `name{a="b"} 1` or `name 1`."""
    name, brace, rest = sample.partition("{")
    if brace and " " not in name:
        return f'{name}{{{LABEL}="{process}",{rest}'
    name, _, value = sample.partition(" ")
    return f'{name}{{{LABEL}="{process}"}} {value}'
