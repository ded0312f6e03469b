"""The events that a test logs in this process."""

from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture
from structlog.typing import EventDict

from app.telemetry import log_fields


class Logged:
    """The events, with the fields that come from their surroundings."""

    def __init__(self, events: list[EventDict]) -> None:
        self.events = events

    def named(self, event: str) -> list[EventDict]:
        return [one for one in self.events if one["event"] == event]

    def texts(self, event: str) -> list[str]:
        """The errors of the events with this name."""
        return [one["error"] for one in self.named(event)]


@pytest.fixture
def logged() -> Iterator[Logged]:
    capture = LogCapture()
    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, log_fields.add_surroundings, capture],
        cache_logger_on_first_use=False,
    )
    yield Logged(capture.entries)
    structlog.configure(**before)
