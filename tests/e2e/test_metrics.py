"""The metrics of a gateway that has run a job: all that the code defines, named by Prometheus' conventions."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from app.domain.kinds.registry import all_kinds
from tests.e2e.user import User, job
from tests.support.gateways.process import GatewayProcess
from tests.support.telemetry.metrics import defined_metrics, exposed_metrics
from tests.support.telemetry.promtool import promtool
from tests.support.waiting import until

# No label may have the name of an object or of a user: each value would create a time series that stays.
UNBOUNDED = {"job", "uid", "pod", "node", "token", "actor", "user", "message", "path", "url"}
OTHER_UNITS = re.compile(
    r"_(?:ms|us|ns|milliseconds|microseconds|minutes|hours|days|kilobytes|mb|mib|kib|percent)(?:_|$)"
)
OF_TIME = re.compile(r"_(?:duration|age|lag|wait|remaining)(?:_|$)")


@pytest_asyncio.fixture
async def user(own_gateway: GatewayProcess, namespace: str, tmp_path: Path) -> AsyncIterator[User]:
    """A user of a gateway with all roles, also the one that keeps logs."""
    url = await own_gateway.start({"JOBGATE_LOG_STORE": f"file://{tmp_path}/logs"})
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield User(client, namespace)


@pytest_asyncio.fixture
async def exposition(user: User) -> str:
    """The text of /metrics once jobs have ended and live jobs have been counted."""
    await user.submit(job("quick", "true"))
    assert (await user.ended("quick"))["phase"] == "Succeeded"
    # A quick job can end before the controller has seen it run. This one runs until it is cancelled.
    await user.submit(job("long", "while ! test -e /tmp/jobgate-no-such-file; do sleep 0.1; done"))
    await user.until("long", "Running")
    await user.call("POST", "/long/cancel", status=202)
    assert (await user.ended("long"))["phase"] == "Cancelled"

    async def read() -> str:
        return (await user.http.get("/metrics")).text

    return await until(read, lambda text: "\njobgate_feed_position " in text, what="the first count", within=120)


async def test_all_metrics_are_exposed_and_follow_the_conventions(exposition: str) -> None:
    exposed = exposed_metrics(exposition)
    assert sorted((one.name, one.type, one.text) for one in exposed.values()) == sorted(
        (one.name, one.type, one.text) for one in defined_metrics()
    )
    for metric in exposed.values():
        assert re.fullmatch(r"jobgate(_[a-z]+)+", metric.name), metric.name
        assert metric.text.endswith("."), metric.name
        assert metric.name.endswith("_total") == (metric.type == "counter"), metric.name
        assert not metric.name.endswith(("_sum", "_count", "_bucket", "_created")), metric.name
        assert not OTHER_UNITS.search(metric.name), metric.name
        assert not OF_TIME.search(metric.name) or metric.name.endswith("_seconds"), metric.name
    declared = {one.name: set(one.labels) for one in defined_metrics()}
    assert {name: one.labels for name, one in exposed.items() if set(one.labels) - declared[name]} == {}
    assert {label for labels in declared.values() for label in labels} & UNBOUNDED == set()


async def test_the_job_is_in_the_metrics_of_its_kind(exposition: str) -> None:
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
    }
    kind = ("kind", "GenericJob")
    for stage in ("creation", "start", "run"):
        assert samples[f"jobgate_job_{stage}_duration_seconds_count", (kind,)] >= 1
    for phase in ("Succeeded", "Cancelled"):
        ends = (
            count
            for (name, labels), count in samples.items()
            if name == "jobgate_jobs_ended_total" and {kind, ("phase", phase)} < set(labels)
        )
        assert sum(ends) >= 1
    assert samples["jobgate_mirror_lag_seconds_count", ()] >= 1
    assert samples["jobgate_mirror_lists_total", ()] >= 1
    for gauge in ("cluster_contact_age_seconds", "mirror_list_age_seconds", "mirror_pods", "feed_follower_position"):
        assert samples[f"jobgate_{gauge}", ()] >= 0
    assert samples["jobgate_cluster_actions_total", (("action", "CreatePod"), ("outcome", "done"))] >= 1
    assert samples["jobgate_cluster_requests_total", (("code", "201"), ("verb", "create"))] >= 1
    assert samples["jobgate_lease_epoch", ()] >= 1
    assert samples["jobgate_controller_state", (("state", "Running"),)] == 1
    assert samples["jobgate_database_size_bytes", ()] > 1_000_000
    # Prometheus sees no increase in a series that begins with 1, so these begin with 0.
    assert samples["jobgate_cluster_refusals_total", (("code", "ClusterDenied"),)] == 0
    assert samples["jobgate_loop_restarts_total", (("loop", "publisher"),)] == 0
    kinds = {dict(labels)["kind"] for name, labels in samples if name.startswith("jobgate_job")}
    assert kinds <= all_kinds().keys()


async def test_promtool_finds_no_fault_in_the_names(exposition: str) -> None:
    own = "".join(f"{line}\n" for line in exposition.splitlines() if "jobgate_" in line)
    promtool("check", "metrics", stdin=own)
