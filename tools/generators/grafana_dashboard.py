"""Writes deploy/monitoring/grafana-dashboard.json from the rows of panels below (`make grafana`)."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TARGET: Final = Path(__file__).parents[2] / "deploy" / "monitoring" / "grafana-dashboard.json"
WIDTH: Final = 24  # columns of a Grafana dashboard
HEIGHT: Final = 8
SMALL: Final = 4
# Each selector is limited to the scrape job that the reader chooses.
METRIC: Final = re.compile(r"\b((?:jobgate|process)_[a-z_]+)(\{)?")
SELECTED: Final = 'job=~"$job"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A chart. `queries` has the PromQL of each legend. `stat` shows only the last value."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    text: str = ""
    stat: bool = False


def quantile(share: float, metric: str, by: str = "", matching: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{matching}[$__rate_interval])))"


def rate(metric: str, by: str = "", matching: str = "") -> str:
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({metric}{matching}[$__rate_interval]))"


def mean(metric: str) -> str:
    return f"{rate(f'{metric}_sum')} / {rate(f'{metric}_count')}"


def quantiles(title: str, metric: str, by: str = "", *, matching: str = "") -> Panel:
    """Return a panel with the median and the 95th percentile of a histogram of seconds."""
    suffix = f" {{{{{by}}}}}" if by else ""
    shares = {f"p50{suffix}": 0.5, f"p95{suffix}": 0.95}
    queries = {legend: quantile(share, metric, by, matching) for legend, share in shares.items()}
    return Panel(title=title, queries=queries, unit="s")


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))


def rates(title: str, metric: str, by: str) -> Panel:
    """Return a panel with the rate of a counter by labels."""
    return Panel(title=title, queries={_legend(by): rate(metric, by)}, unit="ops")


def levels(title: str, metric: str, by: str, unit: str = "short", *, aggregate: str = "max") -> Panel:
    """Return a panel with the maximum or the sum of a gauge by labels."""
    return Panel(title=title, queries={_legend(by): f"{aggregate} by ({by}) ({metric})"}, unit=unit)


def stat(title: str, query: str, unit: str = "short", legend: str = "") -> Panel:
    return Panel(title=title, queries={legend: query}, unit=unit, stat=True)


# The duration of requests that wait on purpose does not show how fast the gateway is.
_SHORT: Final = '{route!~".*(watch|logs).*"}'

ROWS: Final[dict[str, Sequence[Panel]]] = {
    "Overview": (
        stat("Jobs that have not ended", "sum(max by (namespace, kind, phase) (jobgate_jobs))"),
        stat("Active controllers", "sum(jobgate_lease_epoch > bool 0)"),
        stat("Last contact with the cluster", "max(jobgate_cluster_contact_age_seconds)", "s"),
        stat("Requests", rate("jobgate_http_request_duration_seconds_count"), "reqps"),
        stat(
            "Server errors",
            f"""{rate("jobgate_http_request_duration_seconds_count", matching='{status=~"5.."}')}"""
            f""" / {rate("jobgate_http_request_duration_seconds_count")}""",
            "percentunit",
        ),
        stat("Processes by version", "count by (version) (jobgate_build_info)", legend="{{version}}"),
    ),
    "Jobs": (
        Panel(
            title="Jobs by phase",
            queries={"{{phase}}": "sum by (phase) (max by (namespace, kind, phase) (jobgate_jobs))"},
        ),
        Panel(
            title="Jobs by kind", queries={"{{kind}}": "sum by (kind) (max by (namespace, kind, phase) (jobgate_jobs))"}
        ),
        Panel(
            title="Jobs by namespace",
            queries={"{{namespace}}": "sum by (namespace) (max by (namespace, kind, phase) (jobgate_jobs))"},
        ),
        rates("Ended jobs", "jobgate_jobs_ended_total", "phase"),
        quantiles("Submitted until created", "jobgate_job_creation_duration_seconds", "kind"),
        quantiles("Created until running", "jobgate_job_start_duration_seconds", "kind"),
        quantiles("Running until ended", "jobgate_job_run_duration_seconds", "kind"),
    ),
    "Queues": (
        Panel(
            title="Jobs in queues",
            queries={
                "{{namespace}}/{{queue}} {{state}}": "sum by (namespace, queue, state) "
                "(max by (namespace, queue, state) (jobgate_queue_jobs))"
            },
        ),
        quantiles("Queued until admitted", "jobgate_queue_duration_seconds", "queue"),
        rates("Evictions", "jobgate_evictions_total", "reason"),
        levels("Jobs that wait for the limit of live pods", "jobgate_jobs_without_room", "namespace"),
        levels("Resources that jobs hold", "jobgate_usage_held", "namespace, resource, use"),
    ),
    "Requests": (
        rates("Requests by status", "jobgate_http_request_duration_seconds_count", "status"),
        rates("Requests by route", "jobgate_http_request_duration_seconds_count", "method, route"),
        quantiles("Duration, without watches and logs", "jobgate_http_request_duration_seconds", matching=_SHORT),
        levels("Streams, long polls and logs", "jobgate_long_requests", "kind", aggregate="sum"),
        Panel(
            title="Connections and waiting requests",
            queries={
                "connections": "sum(jobgate_http_connections)",
                "{{work}}": "sum by (work) (jobgate_waiting_requests)",
            },
        ),
        Panel(
            title="Refused",
            queries={
                "overload: {{work}}": rate("jobgate_overload_refusals_total", "work"),
                "{{reason}}": rate("jobgate_http_refusals_total", "reason"),
            },
            unit="ops",
        ),
    ),
    "Submissions and PostgreSQL": (
        Panel(title="Submissions of a transaction, mean", queries={"submissions": mean("jobgate_group_commit_jobs")}),
        quantiles("Wait for the transaction", "jobgate_group_commit_wait_seconds"),
        quantiles("Transaction", "jobgate_group_commit_duration_seconds"),
        Panel(
            title="Connections of pools",
            queries={
                "{{pool}} in use": "sum by (pool) (jobgate_database_pool_connections_in_use)",
                "{{pool}} open": "sum by (pool) (jobgate_database_pool_connections)",
                "{{pool}} at most": "sum by (pool) (jobgate_database_pool_max_connections)",
            },
        ),
        levels("Callers that wait for a connection", "jobgate_database_pool_waiting", "pool", aggregate="sum"),
        Panel(title="Size of the database", queries={"bytes": "max(jobgate_database_size_bytes)"}, unit="bytes"),
        rates("Rows whose time was over", "jobgate_swept_rows_total", "table"),
        Panel(title="Exports before deletion fail", queries={"failing": "max(jobgate_export_failing)"}),
        levels("Oldest row", "jobgate_table_oldest_row_age_seconds", "table", "s"),
        Panel(title="Feed entries without a number", queries={"entries": "max(jobgate_feed_unnumbered_entries)"}),
        Panel(
            title="Feed entries that a process has not read",
            queries={
                "{{instance}} {{process}}": "scalar(max(jobgate_feed_position)) - jobgate_feed_follower_position",
            },
            text="The position is counted every 15 s, so a process that follows is ahead of it most of the time.",
        ),
    ),
    "Controller": (
        levels("Queue depth", "jobgate_workqueue_depth", "name"),
        quantiles("Wait in the queue", "jobgate_workqueue_queue_duration_seconds", "name"),
        quantiles("Work on an object", "jobgate_workqueue_work_duration_seconds", "name"),
        rates("Reconciles", "jobgate_reconciles_total", "name, result"),
        quantiles("Reconcile, without actions", "jobgate_reconcile_duration_seconds", "name"),
        Panel(
            title="Errors, retries and restarts",
            queries={
                "{{name}} {{cause}}": rate("jobgate_reconcile_errors_total", "name, cause"),
                "{{name}} retries": rate("jobgate_workqueue_retries_total", "name"),
                "restarts of {{loop}}": rate("jobgate_loop_restarts_total", "loop"),
            },
            unit="ops",
        ),
        Panel(
            title="Unfinished work",
            queries={
                "{{name}} sum": "max by (name) (jobgate_workqueue_unfinished_work_seconds)",
                "{{name}} longest": "max by (name) (jobgate_workqueue_longest_running_processor_seconds)",
            },
            unit="s",
        ),
        Panel(title="State", queries={"{{instance}} {{state}}": "jobgate_controller_state"}),
        Panel(
            title="Lease: time until it expires",
            queries={"{{instance}}": "jobgate_lease_remaining_seconds"},
            unit="s",
        ),
        Panel(
            title="Clocks: difference and steps per hour",
            queries={
                "{{instance}} {{clock}}": "jobgate_clock_difference_seconds",
                "steps of {{clock}}": "sum by (clock) (increase(jobgate_clock_steps_total[1h]))",
            },
            unit="s",
        ),
    ),
    "Cluster": (
        quantiles("Change of a pod until stored", "jobgate_mirror_lag_seconds"),
        Panel(
            title="Age of the last list and contact",
            queries={
                "list": "max(jobgate_mirror_list_age_seconds)",
                "contact": "max(jobgate_cluster_contact_age_seconds)",
            },
            unit="s",
        ),
        Panel(
            title="Pods, and lists per hour",
            queries={
                "pods": "max(jobgate_mirror_pods)",
                "lists": "sum(increase(jobgate_mirror_lists_total[1h]))",
            },
        ),
        rates("Requests to the API server", "jobgate_cluster_requests_total", "verb, code"),
        quantiles("Duration of requests", "jobgate_cluster_request_duration_seconds", "verb"),
        rates("Actions", "jobgate_cluster_actions_total", "action, outcome"),
        quantiles("Duration of actions", "jobgate_cluster_action_duration_seconds", "action"),
        rates("Refused creates", "jobgate_cluster_refusals_total", "code"),
        rates("Evidence that could not be read", "jobgate_evidence_failures_total", "what, reason"),
    ),
    "Whole logs": (
        Panel(
            title="Written to the log store",
            queries={
                "text": rate("jobgate_kept_log_bytes_total"),
                "objects": rate("jobgate_kept_log_stored_bytes_total"),
            },
            unit="Bps",
        ),
        Panel(
            title="Logs",
            queries={
                "read now": "sum (jobgate_kept_logs_followed)",
                "wait for their turn": "sum (jobgate_kept_logs_waiting)",
            },
        ),
        levels("Age of the oldest text that is not written", "jobgate_kept_log_lag_seconds", "instance", "s"),
        levels("Text that is not written", "jobgate_kept_log_unwritten_bytes", "instance", "bytes"),
        Panel(
            title="Gaps, cuts, and pods whose logs are not whole",
            queries={
                "gap: {{reason}}": rate("jobgate_kept_log_gaps_total", "reason"),
                "limit of the {{limit}}": rate("jobgate_kept_log_cuts_total", "limit"),
                "released: {{reason}}": rate("jobgate_unkept_logs_total", "reason"),
            },
            unit="ops",
        ),
        Panel(
            title="Errors",
            queries={
                "log store": rate("jobgate_log_store_errors_total"),
                "cluster": rate("jobgate_kept_log_read_errors_total"),
                "processes that cannot write": "sum (jobgate_log_store_failing)",
            },
        ),
    ),
    "Processes and autoscaler": (
        Panel(
            title="CPU",
            queries={"{{instance}} {{process}}": "rate(process_cpu_seconds_total[$__rate_interval])"},
            unit="percentunit",
        ),
        Panel(title="Memory", queries={"{{instance}} {{process}}": "process_resident_memory_bytes"}, unit="bytes"),
        Panel(
            title="Open files and stalls of the event loop",
            queries={
                "{{instance}} {{process}} files": "process_open_fds",
                "{{instance}} {{process}} stalls": "increase(jobgate_loop_stalls_total[5m])",
            },
        ),
        rates("Runs of the autoscaler", "jobgate_autoscaler_runs_total", "outcome"),
        rates("Resizes by the autoscaler", "jobgate_autoscaler_changes_total", "change"),
        rates("Additions to the queues", "jobgate_workqueue_adds_total", "name"),
    ),
}


def text() -> str:
    """Return the JSON document of the dashboard."""
    panels = list(_panels())
    document = {
        "title": "jobgate",
        "uid": "jobgate",
        "tags": ["jobgate"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_DATA_SOURCE, _JOB]},
        "panels": panels,
    }
    return json.dumps(document, indent=2) + "\n"


_DATA_SOURCE: Final = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_JOB: Final = {
    "name": "job",
    "label": "Scrape job",
    "type": "query",
    "datasource": _SOURCE,
    "query": {"query": "label_values(jobgate_build_info, job)", "refId": "job"},
    "includeAll": True,
    "multi": True,
    "refresh": 2,
    "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
}


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, row in ROWS.items():
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, top, WIDTH, 1), "collapsed": False}
        top += 1
        width, height = (WIDTH // len(row), SMALL) if row[0].stat else (WIDTH // 3, HEIGHT)
        for place, panel in enumerate(row):
            number += 1
            left = place * width % WIDTH
            yield _panel(panel, number, _place(left, top + place * width // WIDTH * height, width, height))
        top += -(-len(row) * width // WIDTH) * height


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": _selected(query), "legendFormat": legend}
        for index, (legend, query) in enumerate(panel.queries.items())
    ]
    made = {
        "id": number,
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
    }
    return made | ({"description": panel.text} if panel.text else {})


def _selected(query: str) -> str:
    """Limit each selector of the query to the chosen scrape jobs."""

    def limited(found: re.Match[str]) -> str:
        return f"{found[1]}{{{SELECTED}, " if found[2] else f"{found[1]}{{{SELECTED}}}"

    return METRIC.sub(limited, query)


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
