"""What the node knows about one container, for the status of its pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devcluster.node.containers.restarts import ContainerRole


@dataclass(slots=True)
class ContainerRecord:
    """The status of one container, which its runner updates. `state` and `last_state` have the format of the API."""

    name: str
    image: str
    role: ContainerRole
    spec: Mapping[str, Any]
    state: dict[str, Any]
    last_state: dict[str, Any] = field(default_factory=dict)
    restart_count: int = 0
    ready: bool = False
    started: bool = False
    container_id: str = ""

    @property
    def running(self) -> bool:
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])
