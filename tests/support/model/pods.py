"""A pod of the model cluster."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer, ObservedPod
from app.domain.vocabulary import ReplicaPhase


@dataclass(slots=True, kw_only=True)
class ModelPod:
    """A pod as the API server stores it; its containers start and end together. `forced` waits for no kubelet."""

    name: str
    uid: str
    key: Rank
    attempt: int
    created_at: datetime
    containers: tuple[str, ...] = ("main",)
    phase: ReplicaPhase = ReplicaPhase.CREATING
    node: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    disruption: str | None = None
    deadline: datetime | None = None
    held: bool = True
    ended: bool = False
    forced: bool = False

    @property
    def deleting(self) -> bool:
        return self.deadline is not None

    def end(self, code: int, now: datetime, reason: str | None = None, message: str | None = None) -> None:
        self.phase = ReplicaPhase.SUCCEEDED if code == 0 else ReplicaPhase.FAILED
        self.exit_code, self.finished_at, self.ended = code, now, True
        self.reason, self.message = reason, message

    def seen(self, lost: set[str]) -> ObservedPod:
        state = "terminated" if self.ended else "running" if self.started_at else "waiting"
        containers = tuple(
            ObservedContainer(
                name=name,
                state=state,
                culprit=bool(self.exit_code) and name == self.containers[0],
                default=name == self.containers[0],
                ready=state == "running",
                exit_code=self.exit_code,
                reason=self.reason,
                message=self.message,
                started_at=self.started_at,
            )
            for name in self.containers
        )
        return ObservedPod(
            name=self.name,
            uid=self.uid,
            key=self.key,
            attempt=self.attempt,
            phase=ReplicaPhase.UNKNOWN if self.node in lost and not self.ended else self.phase,
            ended=self.ended or self.forced,
            node=self.node,
            created_at=self.created_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
            exit_code=self.exit_code,
            disruption=self.disruption,
            deletion_deadline=self.deadline,
            held=self.held,
            containers=containers,
        )
