"""Server-side dry runs: the cluster checks whether it would create the objects of jobs, and creates none of them.

    jobs of a request ─▶ a free place ─▶ one replica of each task ─▶ two limiters ─▶ API server

A dry run neither waits long for the cluster nor fails with it: what the cluster has not checked in time is reported as
not checked. A request that waits holds its body and may be one of many, so their number is limited instead of queued.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog
from typing_extensions import override

from app.base.clock import Clock
from app.domain import cluster_check
from app.domain.cluster_check import Answer, CheckedObject, ClusterCheck, ClusterFinding
from app.domain.manifests.gangs import with_gang_apis
from app.k8s.api import KubeApi
from app.k8s.errors import KubeError, KubeStatusError
from app.k8s.limiter import CreateLimiter
from app.services.limits.rate_limiter import RateLimiter
from app.services.reading.gang_apis import GangApis, unknown
from app.services.submitting.jobs import PreparedJob

# Seconds for all objects of a request. A webhook may take 10 s by default, and then its creates mostly fail as well.
_CHECK_SECONDS: Final = 10.0
# Objects of one request, which may have a hundred jobs.
_MOST_OBJECTS: Final = 100
# Requests of this process that wait for the cluster. Each holds its body, and six bodies of the largest size are three
# quarters of the default of MAX_BODIES_BYTES, so that submissions are still read while the cluster does not answer.
_MOST_CHECKS: Final = 6
# Half of them, so that one token cannot exclude the others.
_MOST_CHECKS_OF_TOKEN: Final = 3
# Objects at once: few, so that the connections to the API server remain for logs and for the controller.
_OBJECTS_AT_ONCE: Final = 4.0

log = structlog.get_logger(__name__)


class ClusterChecker(Protocol):
    """Has the cluster check jobs before they are submitted."""

    async def check(self, jobs: Sequence[PreparedJob], token_id: str) -> list[ClusterCheck]:
        """Return the refusals and warnings of the cluster about each job of a request with this token.

        It raises no error of the cluster: an incomplete check says why it is incomplete.
        """
        ...


class NoCluster(ClusterChecker):
    """Reports every check as incomplete, for a process that does not use the cluster in dry runs."""

    def __init__(self, detail: str = "this process of jobgate has no access to a cluster") -> None:
        self._detail = detail

    @override
    async def check(self, jobs: Sequence[PreparedJob], token_id: str) -> list[ClusterCheck]:
        return [ClusterCheck(is_complete=False, detail=self._detail)] * len(jobs)


@dataclass(slots=True)
class _Progress:
    """The check of one job so far."""

    findings: list[ClusterFinding] = field(default_factory=list)
    is_complete: bool = False

    def result(self, stopped: str) -> ClusterCheck:
        detail = "" if self.is_complete else stopped
        return ClusterCheck(is_complete=self.is_complete, detail=detail, findings=tuple(self.findings))


class ClusterDryRun(ClusterChecker):
    """Uses the Kubernetes API with the rights of this process, for at most `rate` objects per second."""

    def __init__(self, api: KubeApi, clock: Clock, *, rate: float, gang_apis: GangApis = unknown) -> None:
        self._api = api
        self._gang_apis = gang_apis
        self._limiter = CreateLimiter(clock, first=_OBJECTS_AT_ONCE, most=_OBJECTS_AT_ONCE)
        self._rate_limiter = RateLimiter(clock, rate)
        self._open: Counter[str] = Counter()  # checks in progress of each token

    @override
    async def check(self, jobs: Sequence[PreparedJob], token_id: str) -> list[ClusterCheck]:
        progress = [_Progress() for _ in jobs]
        if self._open[token_id] >= _MOST_CHECKS_OF_TOKEN or self._open.total() >= _MOST_CHECKS:
            return [of_job.result("too many dry runs wait for the cluster: repeat the request") for of_job in progress]
        try:
            with self._count(token_id):
                async with asyncio.timeout(_CHECK_SECONDS):
                    stopped = await self._check(jobs, progress)
        except TimeoutError:
            stopped = f"the cluster has not checked all objects within {_CHECK_SECONDS:g} s"
        return [of_job.result(stopped) for of_job in progress]

    @contextmanager
    def _count(self, token_id: str) -> Iterator[None]:
        self._open[token_id] += 1
        try:
            yield
        finally:
            self._open[token_id] -= 1
            if not self._open[token_id]:
                del self._open[token_id]

    async def _check(self, jobs: Sequence[PreparedJob], progress: Sequence[_Progress]) -> str:
        """Add the findings about each job. Return why the others were not checked; empty if all were."""
        left, gang_apis = _MOST_OBJECTS, await self._gang_apis()
        for job, so_far in zip(jobs, progress, strict=True):
            for checked in cluster_check.objects_to_check(with_gang_apis(job.plan, gang_apis), job.accepted):
                if not left:
                    return f"only the first {_MOST_OBJECTS} objects of a request are checked"
                left -= 1
                try:
                    refused = await self._refusal(checked, so_far.findings)
                except KubeError as error:
                    log.info("dry_run.cluster_unreachable", error=str(error))
                    return "the cluster cannot be reached"
                if refused is None:
                    continue
                if reason := cluster_check.reason_not_checked(refused):
                    log.info("dry_run.not_checked", object=checked.name, error=refused.message)
                    return reason
                so_far.findings += cluster_check.refusals(checked, refused)
                if cluster_check.concerns_namespace(refused):
                    break
            so_far.is_complete = True
        return ""

    async def _refusal(self, checked: CheckedObject, findings: list[ClusterFinding]) -> Answer | None:
        """Add the warnings about one object. Return its refusal, or None if the cluster would create it."""
        try:
            async with self._limiter:
                await asyncio.sleep(self._rate_limiter.delay())
                texts = await self._api.check_create(checked.manifest)
        except KubeStatusError as error:
            causes = tuple((cause.reason, cause.message, cause.field) for cause in error.causes)
            return Answer(status=error.status, reason=error.reason, message=error.message, causes=causes)
        findings += cluster_check.warnings(checked, texts)
        return None
