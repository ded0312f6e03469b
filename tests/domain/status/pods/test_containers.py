"""The containers of a pod: their order, the default one, and the one that failed first."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.containers import (
    DEFAULT_CONTAINER,
    choose_container,
    default_container,
    observed_containers,
)
from app.domain.status.pods.observation import observe_pod

State = dict[str, Any]
RUNNING: State = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def ended(code: int, second: int | None, **more: Any) -> State:
    finished = None if second is None else f"2026-01-01T00:00:{second:02}Z"
    return {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": finished, **more}}


def a_pod(
    states: dict[str, State],
    init: dict[str, State] | None = None,
    *,
    sidecars: tuple[str, ...] = (),
    default: str | None = None,
) -> Pod:
    """A pod that has ended, with the containers in the order of the spec, and the statuses in that of the kubelet."""
    document = {
        "metadata": {"annotations": {} if default is None else {DEFAULT_CONTAINER: default}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": name} for name in states],
            "initContainers": [
                {"name": name, **({"restartPolicy": "Always"} if name in sidecars else {})} for name in init or {}
            ],
        },
        "status": {
            "phase": "Failed",
            "containerStatuses": [{"name": name, "state": states[name]} for name in sorted(states)],
            "initContainerStatuses": [{"name": name, "state": state} for name, state in (init or {}).items()],
        },
    }
    return msgspec.convert(document, Pod)


def test_containers_are_in_the_order_of_the_spec() -> None:
    pod = a_pod({"train": RUNNING, "agent": RUNNING}, {"prepare": ended(0, 1), "fetch": ended(0, 2)})
    assert [one.name for one in observed_containers(pod)] == ["prepare", "fetch", "train", "agent"]


@pytest.mark.parametrize(("named", "image"), [({}, None), ({"image": ""}, None), ({"image": "busybox"}, "busybox")])
def test_the_image_is_the_one_that_the_kubelet_names(named: dict[str, str], image: str | None) -> None:
    pod = msgspec.convert({"status": {"containerStatuses": [{"name": "main", "state": RUNNING, **named}]}}, Pod)
    assert [container.image for container in observed_containers(pod)] == [image]


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        (a_pod({"train": RUNNING, "agent": RUNNING}), "train"),
        (a_pod({"train": RUNNING, "agent": RUNNING}, default="agent"), "agent"),
        (a_pod({"istio-proxy": RUNNING, "train": RUNNING}, default="train"), "train"),
        (a_pod({"train": RUNNING}, {"fetch": RUNNING}), "train"),
        (a_pod({"train": RUNNING}, {"fetch": RUNNING}, default="fetch"), "fetch"),
        (a_pod({"train": RUNNING, "agent": RUNNING}, default="absent"), "train"),
    ],
)
def test_the_default_container_is_that_of_kubectl(pod: Pod, name: str) -> None:
    assert default_container(pod) == name
    assert [one.name for one in observed_containers(pod) if one.default] == [name]


@pytest.mark.parametrize(
    ("pod", "name", "code"),
    [
        # agent fails because train has failed.
        (a_pod({"train": ended(17, 2), "agent": ended(1, 4)}), "train", 17),
        (a_pod({"train": ended(17, 4), "agent": ended(1, 2)}), "agent", 1),
        (a_pod({"train": ended(0, 1), "agent": ended(1, 2)}), "agent", 1),
        # In one second, the order of the spec counts, and before it the annotation.
        (a_pod({"train": ended(17, 2), "agent": ended(1, 2)}), "train", 17),
        (a_pod({"proxy": ended(137, 2), "train": ended(17, 2)}, default="train"), "train", 17),
        # The kubelet could not find a container, so it does not know when it ended.
        (a_pod({"lost": ended(137, None), "train": ended(17, 9)}), "train", 17),
        (a_pod({"train": {"waiting": {}}}, {"fetch": ended(3, 1)}), "fetch", 3),
        # A sidecar that crashes does not fail its pod.
        (a_pod({"train": ended(17, 5)}, {"proxy": ended(1, 2)}, sidecars=("proxy",)), "train", 17),
    ],
)
def test_a_failure_is_that_of_the_container_that_failed_first(pod: Pod, name: str, code: int) -> None:
    observed = observe_pod(pod, lost_nodes=())
    assert (observed.failed_container, observed.exit_code) == (name, code)
    assert f'container "{name}"' in (observed.message or "")


def test_a_sidecar_that_crashed_does_not_keep_the_others_from_starting() -> None:
    pod = a_pod(
        {"train": {"waiting": {}}}, {"proxy": ended(7, 1), "setup": ended(3, 4), "fetch": {}}, sidecars=("proxy",)
    )
    observed = observe_pod(pod, lost_nodes=())
    shown = choose_container(observed.containers, None)
    assert (observed.failed_container, shown and shown.name) == ("setup", "setup")


states = st.sampled_from(
    [
        RUNNING,
        {"waiting": {"reason": "ContainerCreating"}},
        {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
        {"waiting": {"reason": "CreateContainerConfigError", "message": "no such secret"}},
        ended(0, 3),
        ended(1, 3),
        ended(2, 4),
        ended(137, None),
    ]
)
conditions: list[State] = [
    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:01Z"},
    {"type": "DisruptionTarget", "status": "False", "reason": "EvictionByEvictionAPI"},
]


@given(
    main=st.lists(states, min_size=1, max_size=4),
    init=st.lists(states, max_size=3),
    phase=st.sampled_from(["Pending", "Running", "Failed", "Succeeded"]),
    data=st.data(),
)
def test_the_order_of_the_lists_in_a_status_changes_nothing(
    main: list[State], init: list[State], phase: str, data: st.DataObject
) -> None:
    spec = {
        "nodeName": "n1",
        "containers": [{"name": f"c{place}"} for place in range(len(main))],
        "initContainers": [
            {"name": f"i{place}"} | ({"restartPolicy": "Always"} if place == 1 else {}) for place in range(len(init))
        ],
    }
    lists: dict[str, list[State]] = {
        "containerStatuses": [{"name": f"c{place}", "state": state} for place, state in enumerate(main)],
        "initContainerStatuses": [{"name": f"i{place}", "state": state} for place, state in enumerate(init)],
        "conditions": conditions,
    }
    shuffled = {name: data.draw(st.permutations(items)) for name, items in lists.items()}
    as_spec, otherwise = (
        observe_pod(msgspec.convert({"spec": spec, "status": {"phase": phase, **one}}, Pod), lost_nodes=())
        for one in (lists, shuffled)
    )
    assert otherwise == as_spec
