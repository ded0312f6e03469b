from typing import Any

import pytest

from devcluster.node.containers.restarts import ContainerRole, RestartBackoff, restarts, role_of

ON_42 = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


def test_the_first_restart_is_immediate_and_the_rest_double_to_the_maximum() -> None:
    backoff = RestartBackoff(10, 300)
    assert [backoff.next_delay(ran_for=1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.next_delay(ran_for=601) == 0


@pytest.mark.parametrize(
    ("policy", "role", "code", "again"),
    [
        ("Never", ContainerRole.MAIN, 1, False),
        ("OnFailure", ContainerRole.MAIN, 1, True),
        ("OnFailure", ContainerRole.MAIN, 0, False),
        ("Always", ContainerRole.MAIN, 0, True),
        ("Never", ContainerRole.INIT, 1, False),
        ("Always", ContainerRole.INIT, 1, True),
        ("Always", ContainerRole.INIT, 0, False),
        ("OnFailure", ContainerRole.INIT, 1, True),
        ("Never", ContainerRole.SIDECAR, 0, True),
    ],
)
def test_restart_policies(policy: str, role: ContainerRole, code: int, again: bool) -> None:  # noqa: FBT001
    assert restarts({"name": "c"}, role, policy, code) is again


@pytest.mark.parametrize(
    ("container", "code", "again"),
    [
        ({"restartPolicy": "Always"}, 0, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [ON_42]}, 42, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [ON_42]}, 41, False),
    ],
)
def test_a_containers_own_rules_come_first(container: dict[str, Any], code: int, again: bool) -> None:  # noqa: FBT001
    assert restarts(container, ContainerRole.MAIN, "Never", code) is again


def test_an_init_container_that_always_restarts_is_a_sidecar() -> None:
    assert role_of({"restartPolicy": "Always"}, is_init=True) is ContainerRole.SIDECAR
    assert role_of({}, is_init=True) is ContainerRole.INIT
    assert role_of({"restartPolicy": "Always"}, is_init=False) is ContainerRole.MAIN
