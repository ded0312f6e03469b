"""Writes the report of `jobgate recover` for people and for programs."""

import json
from collections.abc import Sequence

from app.base.visible import visible_line
from app.domain.recovery.differences import Choices, JobFinding, remedy
from app.loops.recovery.survey import count
from app.running.operations.recovering import Report

_HEADER = ("NAMESPACE", "NAME", "KIND", "UID", "DIFFERENCE", "RECORDED", "CLUSTER", "PODS", "REMEDY")
_CHOOSE = "(choose)"


def as_json(report: Report, choices: Choices) -> str:
    document = {
        "stopped": report.stopped,
        "counts": count(report.findings),
        "jobs": [_job(finding, choices) for finding in report.findings],
        "unknownStatefulSets": list(report.sets),
    }
    return json.dumps(document, indent=2)


def as_text(report: Report, choices: Choices) -> str:
    """Return the reason of the stop, the counts, and a line for each job."""
    stopped = f"The controller is stopped: {report.stopped}." if report.stopped else "Database and cluster match."
    counts = ", ".join(f"{number} {difference}" for difference, number in count(report.findings).items())
    rows = [tuple(map(str, _job(finding, choices).values())) for finding in report.findings]
    table = _lines([_HEADER, *rows]) if rows else []
    sets = [f"The database does not know the SampleSet of StatefulSet {name}, which stays." for name in report.sets]
    return "\n".join(visible_line(line) for line in (stopped, f"Jobs: {counts}.", *table, *sets))


def _job(finding: JobFinding, choices: Choices) -> dict[str, str | int]:
    return {
        "namespace": finding.namespace,
        "name": finding.name,
        "kind": finding.kind,
        "uid": finding.uid,
        "difference": finding.difference,
        "recorded": finding.recorded or "",
        "cluster": finding.ended or "",
        "pods": len(finding.pods),
        "remedy": remedy(finding.difference, choices) or _CHOOSE,
    }


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [[cell or "-" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
