"""The lines that a gateway process has logged."""

import json
from typing import Any

from tests.support.gateways.process import READY, GatewayProcess

ALWAYS = ["timestamp", "level", "event", "logger", "process"]


def events_of(gateway: GatewayProcess) -> list[dict[str, Any]]:
    """Parse each complete line of standard error. The line that reports the address is on standard output."""
    lines = [line for line in gateway.log.read_text().split("\n")[:-1] if not line.startswith(READY)]
    events = [json.loads(line) for line in lines]
    assert all(list(event)[: len(ALWAYS)] == ALWAYS for event in events)
    return events


def found(gateway: GatewayProcess, event: str, **fields: object) -> list[dict[str, Any]]:
    """The events of this name with these fields."""
    return [
        one for one in events_of(gateway) if one["event"] == event and all(one.get(k) == v for k, v in fields.items())
    ]
