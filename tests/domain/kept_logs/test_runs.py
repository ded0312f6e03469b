"""The runs of containers, as the kubelet reports them."""

from collections.abc import Sequence

import pytest

from app.domain.kept_logs.runs import ContainerRun, is_finished, runs_of
from app.domain.kubernetes.objects import (
    ContainerState,
    ContainerStatus,
    Pod,
    PodStatus,
    Running,
    Terminated,
    Waiting,
)

RUNNING = ContainerState(running=Running())
WAITING = ContainerState(waiting=Waiting(reason="CrashLoopBackOff"))


def ended(container_id: str) -> ContainerState:
    return ContainerState(terminated=Terminated(container_id=container_id))


def pod(*containers: ContainerStatus, init: Sequence[ContainerStatus] = (), phase: str = "Running") -> Pod:
    return Pod(status=PodStatus(phase=phase, container_statuses=containers, init_container_statuses=tuple(init)))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(ContainerStatus(name="main", state=WAITING), [], id="never started"),
        pytest.param(
            ContainerStatus(name="main", state=RUNNING, container_id="a"),
            [ContainerRun(container="main", number=0, container_id="a", is_running=True)],
            id="first run",
        ),
        pytest.param(
            ContainerStatus(name="main", state=ended("a"), container_id="a"),
            [ContainerRun(container="main", number=0, container_id="a")],
            id="ended",
        ),
        pytest.param(
            ContainerStatus(name="main", state=ended("a"), last_state=ended("a"), container_id="b", restart_count=1),
            [ContainerRun(container="main", number=0, container_id="a", is_previous=True)],
            id="starts again: the state is that of the run before",
        ),
        pytest.param(
            ContainerStatus(name="main", state=WAITING, last_state=ended("b"), container_id="b", restart_count=1),
            [ContainerRun(container="main", number=1, container_id="b")],
            id="waits for its restart: the run before is lost",
        ),
        pytest.param(
            ContainerStatus(name="main", state=WAITING, last_state=ended("b"), restart_count=1),
            [ContainerRun(container="main", number=1, container_id="b")],
            id="waits for its restart, without an id",
        ),
        pytest.param(
            ContainerStatus(name="main", state=RUNNING, last_state=ended("b"), container_id="c", restart_count=2),
            [
                ContainerRun(container="main", number=2, container_id="c", is_running=True),
                ContainerRun(container="main", number=1, container_id="b", is_previous=True),
            ],
            id="restarted",
        ),
    ],
)
def test_the_cluster_has_the_logs_of_the_last_two_runs(
    status: ContainerStatus, expected: Sequence[ContainerRun]
) -> None:
    assert runs_of(pod(status)) == expected


def test_init_containers_have_logs_and_an_ended_pod_starts_no_run() -> None:
    first = ContainerStatus(name="first", state=ended("a"), container_id="a")
    main = ContainerStatus(name="main", state=ended("b"), container_id="b")
    found = pod(main, init=[first], phase="Failed")
    assert [(run.container, run.is_last) for run in runs_of(found)] == [("first", True), ("main", True)]
    assert is_finished(found)
    assert not is_finished(pod(main, phase="Running"))
    assert not is_finished(pod(ContainerStatus(name="main", state=RUNNING, container_id="b"), phase="Failed"))
