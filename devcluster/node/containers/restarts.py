"""When containers come back: the kubelet's rules. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ContainerRole(StrEnum):
    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


@dataclass(slots=True)
class RestartBackoff:
    """The first restart is immediate; the next wait base, 2 base … up to the maximum."""

    base: float
    maximum: float
    _restarts: int = 0

    def next_delay(self, *, ran_for: float) -> float:
        """The wait before the restart that follows a run of this length."""
        if ran_for > 2 * self.maximum:
            self._restarts = 0
        delay = 0.0 if self._restarts == 0 else min(self.maximum, self.base * 2 ** min(30, self._restarts - 1))
        self._restarts += 1
        return delay


def role_of(container: Mapping[str, Any], *, is_init: bool) -> ContainerRole:
    if not is_init:
        return ContainerRole.MAIN
    return ContainerRole.SIDECAR if container.get("restartPolicy") == "Always" else ContainerRole.INIT


def restarts(container: Mapping[str, Any], role: ContainerRole, pod_policy: str, exit_code: int) -> bool:
    """Whether a container that ended with this code is started again."""
    if role is ContainerRole.SIDECAR:
        return True
    for rule in container.get("restartPolicyRules") or []:
        if rule.get("action") == "Restart" and _matches(rule.get("exitCodes") or {}, exit_code):
            return True
    policy = container.get("restartPolicy") or pod_policy
    if role is ContainerRole.INIT:
        return exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _matches(condition: Mapping[str, Any], exit_code: int) -> bool:
    inside = exit_code in (condition.get("values") or [])
    return inside if condition.get("operator") == "In" else not inside
