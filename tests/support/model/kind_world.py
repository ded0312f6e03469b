"""The model cluster with a job of a real kind, whose plan follows its manifest and whose native status is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from app.domain.kinds.job_kind import JobKind, Scaling, Site, StatusFacts
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.reconcile.timing import Timing
from app.domain.reconcile.values import Decision
from tests.support.kinds.variations import kind_of
from tests.support.model.cluster import World
from tests.support.model.faults import Exit
from tests.support.model.reconcile_checks import check_reconcile

SITE: Final = Site(pserver_restart_limit=2)  # low, so that short stories reach it
EXITS: Final = (
    Exit(0),
    Exit(1),
    Exit(0, "Completed", "done"),
    Exit(1, "Error", "ValueError: x"),
    Exit(137, "OOMKilled", "killed"),
    Exit(137, "Error", "killed"),
    Exit(139, "Error", ""),
)
_ROOM: Final = 2  # replicas that a task may have beyond its least, so that the stories stay short


@dataclass(slots=True, kw_only=True)
class KindWorld(World):
    """A job of a real kind. `on_native_status` gets every native status, in the order in which clients may see them."""

    manifest: Manifest
    on_native_status: Callable[["KindWorld", Mapping[str, Any]], None]
    generation: int = 1
    end: Mapping[str, Any] | None = None  # the first native status after the job's end

    @property
    def kind(self) -> JobKind[Any]:
        return kind_of(self.manifest)

    @override
    def reconcile(self, *, crash: bool = False, times: int = 1) -> Decision:
        self.plan = plan_of(self.manifest, self.generation, resumed=self.recorded.status.resumes > 0)
        decision = World.reconcile(self, crash=crash, times=times)
        self.read_native_status()
        return decision

    def read_native_status(self) -> None:
        """Read the native status, as a client does."""
        facts = StatusFacts(
            status=self.recorded.status,
            replicas=list(self.recorded.replicas.values()),
            attempts=[(key.task, key.rank, attempt) for (key, _), attempt in self.attempts.items()],
            scale_records=sorted([*self.scaled, *self.recorded.scaling], key=lambda record: record.seq),
            created_at=self.recorded.created_at,
            deleted=self.intent.remove,
        )
        self.on_native_status(self, self.kind.native_status(self.kind.read(self.manifest), facts))

    @override
    def request_size(self, index: int) -> None:
        """Request other sizes of one task or of all tasks, within the bounds of the job."""
        scaling = self.kind.scaling(self.kind.read(self.manifest))
        sizes = _sizes(scaling, index) if scaling is not None else {}
        if scaling is None or not sizes:
            return
        for task, size in sizes.items():
            self.record_scale_request(task, scaling.sizes[task], size)
        self._edit(self.kind.resize(self.kind.read(self.manifest), sizes).manifest)

    @override
    def set_paused(self, *, paused: bool) -> None:
        if self.kind.supports_pause:
            self._edit(self.kind.with_pause(self.kind.read(self.manifest), paused=paused).manifest)

    def _edit(self, manifest: Manifest) -> None:
        if manifest == self.manifest:
            return
        before = self.plan
        self.manifest, self.generation = manifest, self.generation + 1
        self.plan = plan_of(manifest, self.generation, resumed=self.recorded.status.resumes > 0)
        check_remaining_replicas(before, self.plan)
        self.read_native_status()


def a_kind_world(
    manifest: Manifest, timing: Timing, on_native_status: Callable[[KindWorld, Mapping[str, Any]], None]
) -> KindWorld:
    plan = plan_of(manifest, 1, resumed=False)
    return KindWorld(
        manifest=manifest,
        plan=plan,
        timing=timing,
        check=check_reconcile,
        on_native_status=on_native_status,
        exits=EXITS,
    )


def plan_of(manifest: Manifest, generation: int, *, resumed: bool) -> JobPlan:
    identity = JobIdentity(
        uid="u",
        kind=manifest["kind"],
        api_version=manifest["apiVersion"],
        namespace="ns",
        name=manifest["metadata"]["name"],
        generation=generation,
        installation="i",
    )
    return kind_of(manifest).plan(kind_of(manifest).read(manifest), identity, resumed=resumed, site=SITE)


def check_remaining_replicas(before: JobPlan, after: JobPlan) -> None:
    """Check that remaining replicas keep their names and global ranks, and that all of these are unique."""
    for key in before.replicas.keys() & after.replicas.keys():
        was, now = before.replicas[key], after.replicas[key]
        assert (was.pod_name, was.hostname, was.global_rank) == (now.pod_name, now.hostname, now.global_rank)
    assert len({replica.global_rank for replica in after.replicas.values()}) == len(after.replicas)
    assert len({replica.pod_name for replica in after.replicas.values()}) == len(after.replicas)


def _sizes(scaling: Scaling, index: int) -> dict[str, int]:
    """Sizes by task. The index selects the task and its distance from the minimum; every fourth selects all tasks."""
    tasks = sorted(scaling.sizes)
    asked = tasks if index % 4 == 3 else [tasks[index % len(tasks)]]
    wanted = {task: scaling.bounds[task][0] + (index + place) % (_ROOM + 1) for place, task in enumerate(asked)}
    wanted = {task: min(size, scaling.bounds[task][1]) for task, size in wanted.items()}
    total = sum({**scaling.sizes, **wanted}.values())
    if not scaling.total[0] <= total <= scaling.total[1]:
        return {}
    return {task: size for task, size in wanted.items() if size != scaling.sizes[task]}
