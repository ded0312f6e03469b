"""The stories: each example with its expected end, and with the actions of a user while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """An action of a user: once the job is in `phase`, send `action` with `body`."""

    phase: str
    action: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The job of another example is in a phase, or waits for a reason. `state` is the phase or the code."""

    job: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One example. `file` is below examples/; `logs` lists task, rank and attempt of the logs to show at the end.

    The job is submitted at the moment `after`, otherwise at once.
    """

    file: str
    shows: str
    ends: str
    after: Moment | None = None
    acts: tuple[Act, ...] = ()
    logs: tuple[tuple[str, int, int], ...] = ()


STORIES = (
    Story(
        file="generic-job/distributed-training.yaml",
        shows="two workers and a chief train over TCP, finding each other by Service name",
        ends="Succeeded",
        logs=(("chief", 0, 1),),
    ),
    Story(
        file="generic-job/flaky.yaml",
        shows="fails, is restarted, and succeeds; the whole log of the first attempt outlives its pod",
        ends="Succeeded",
        logs=(("main", 0, 1), ("main", 0, 2)),
    ),
    Story(
        file="generic-job/init-and-service.yaml",
        shows="an init container, a volume, a readiness probe and a Service",
        ends="Succeeded",
        logs=(("client", 0, 1),),
    ),
    Story(
        file="generic-job/pausable.yaml",
        shows="paused while it runs, then resumed with other arguments",
        ends="Succeeded",
        acts=(Act(phase="Running", action="pause"), Act(phase="Paused", action="resume")),
        logs=(("trainer", 0, 1), ("trainer", 0, 2)),
    ),
    Story(
        file="generic-job/debug.yaml",
        shows="debug mode: the pods sleep instead of failing, until they are cancelled",
        ends="Cancelled",
        acts=(Act(phase="Running", action="cancel"),),
    ),
    Story(
        file="generic-job/failing.yaml",
        shows="fails by a failure rule, and reports the reason",
        ends="Failed",
        logs=(("worker", 1, 1),),
    ),
    Story(
        file="mx-job/kvstore.yaml",
        shows="workers train with two parameter servers, which a scheduler connects",
        ends="Succeeded",
        logs=(("scheduler", 0, 1), ("worker", 0, 1)),
    ),
    Story(
        file="mx-job/local.yaml",
        shows="one worker, killed once and restarted because of its exit code",
        ends="Succeeded",
        logs=(("worker", 0, 1), ("worker", 0, 2)),
    ),
    Story(
        file="training-job/parameter-server.yaml",
        shows="a trainer pushes gradients to a parameter server; two more join it while it runs",
        ends="Succeeded",
        acts=(Act(phase="Running", action="scale", body={"replicas": 3}),),
        logs=(("pserver", 0, 1), ("trainer", 0, 1)),
    ),
    Story(
        file="training-job/plain-trainers.yaml",
        shows="trainers without fault tolerance",
        ends="Succeeded",
        logs=(("trainer", 1, 1),),
    ),
    Story(
        file="di-job/corridor.yaml",
        shows="collectors follow the table of a learner until the evaluator accepts it",
        ends="Succeeded",
        logs=(("learner", 0, 1), ("evaluator", 0, 1)),
    ),
    Story(
        file="di-job/growing.yaml",
        shows="a learner adds collectors while it runs, and removes them again",
        ends="Succeeded",
        logs=(("learner", 0, 1),),
    ),
)

# They need the queue of examples/queues/queue.yaml.
QUEUED = (
    Story(
        file="queues/experiment.yaml",
        shows="uses the whole quota of a queue, is preempted by an urgent job, and goes on after it",
        ends="Succeeded",
        logs=(("worker", 0, 1), ("worker", 0, 2)),
    ),
    Story(
        file="queues/follow-up.yaml",
        shows="waits in the queue until its quota is free",
        ends="Succeeded",
        after=Moment(job="experiment", state="Running"),
    ),
    Story(
        file="queues/urgent.yaml",
        shows="has a higher priority, and preempts the job that runs",
        ends="Succeeded",
        after=Moment(job="follow-up", state="WaitingForQuota"),
    ),
)
