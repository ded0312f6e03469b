"""The startup, liveness and readiness probes of a container."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from devcluster.node.containers.handlers import ActionError, HandlerTarget, perform


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReports:
    """The callbacks by which probes report to the runner of their container."""

    started: Callable[[], None]
    ready: Callable[[bool], None]
    unhealthy: Callable[[str, str], None]
    """Called after each failed probe with its kind (startup, liveness or readiness) and the error."""
    must_restart: Callable[[str, float | None], Awaitable[None]]
    """Called with the kind of the probe (startup or liveness) and the grace period of the probe."""


async def run_probes(container: Mapping[str, Any], target: HandlerTarget, reports: ProbeReports) -> None:
    """Probe until cancelled. A container without probes is started and ready at once."""
    if startup := container.get("startupProbe"):
        passed = await _until(startup, "startup", target, reports, wanted=True)
        if not passed:
            await reports.must_restart("startup", startup.get("terminationGracePeriodSeconds"))
            return
    reports.started()
    readiness, liveness = container.get("readinessProbe"), container.get("livenessProbe")
    if not readiness:
        reports.ready(True)  # noqa: FBT003
    async with asyncio.TaskGroup() as group:
        if readiness:
            group.create_task(_readiness(readiness, target, reports))
        if liveness:
            group.create_task(_liveness(liveness, target, reports))


async def _readiness(probe: Mapping[str, Any], target: HandlerTarget, reports: ProbeReports) -> None:
    ready, delay = False, True
    while True:
        await _until(probe, "readiness", target, reports, wanted=not ready, delay=delay)
        ready, delay = not ready, False
        reports.ready(ready)


async def _liveness(probe: Mapping[str, Any], target: HandlerTarget, reports: ProbeReports) -> None:
    await _until(probe, "liveness", target, reports, wanted=False)
    await reports.must_restart("liveness", probe.get("terminationGracePeriodSeconds"))


async def _until(
    probe: Mapping[str, Any],
    kind: str,
    target: HandlerTarget,
    reports: ProbeReports,
    *,
    wanted: bool,
    delay: bool = True,
) -> bool:
    """Probe until the success threshold (`wanted`) or the failure threshold is reached; return which one.

    A startup probe ends at either of them.
    """
    if delay:
        await asyncio.sleep(probe.get("initialDelaySeconds") or 0)
    passes = failures = 0
    while True:
        passed = await _try(probe, kind, target, reports)
        passes, failures = (passes + 1, 0) if passed else (0, failures + 1)
        if passes >= (probe.get("successThreshold") or 1) and wanted:
            return True
        if failures >= (probe.get("failureThreshold") or 3) and (not wanted or kind == "startup"):
            return False
        await asyncio.sleep(probe.get("periodSeconds") or 10)


async def _try(probe: Mapping[str, Any], kind: str, target: HandlerTarget, reports: ProbeReports) -> bool:
    try:
        await perform(probe, target, probe.get("timeoutSeconds") or 1)
    except ActionError as error:
        reports.unhealthy(kind, str(error))
        return False
    return True
