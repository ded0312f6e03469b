"""The rules of a kubelet for the restart of containers. Pure."""

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
    """The wait before each restart: none before the first, then `base` seconds, doubled each time up to `maximum`."""

    base: float
    maximum: float
    _restarts: int = 0

    def next_delay(self, *, ran_for: float) -> float:
        """Return the wait before the restart after a run of this length. A long run resets the back-off."""
        # A kubelet forgets earlier failures after a run of twice the maximum back-off.
        if ran_for > 2 * self.maximum:
            self._restarts = 0
        # The limit on the exponent keeps the power small. The maximum applies long before.
        delay = 0.0 if self._restarts == 0 else min(self.maximum, self.base * 2 ** min(30, self._restarts - 1))
        self._restarts += 1
        return delay


def role_of(container: Mapping[str, Any], *, is_init: bool) -> ContainerRole:
    if not is_init:
        return ContainerRole.MAIN
    return ContainerRole.SIDECAR if container.get("restartPolicy") == "Always" else ContainerRole.INIT


def restarts(container: Mapping[str, Any], role: ContainerRole, pod_policy: str, exit_code: int) -> bool:
    """Return whether a container that ended with this exit code is restarted."""
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
