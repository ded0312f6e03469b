"""Logs errors that recur, once for each change of their text."""

from dataclasses import dataclass, field

import structlog

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class FailureLog:
    """The last text of each error that is logged here, by the event of its log lines."""

    texts: dict[str, str] = field(default_factory=dict)

    def note(self, event: str, error: Exception | None) -> None:
        """Log the error unless it is that of the last call for this event. None says that there is none now."""
        text = "" if error is None else str(error)
        if text and text != self.texts.get(event):
            log.warning(event, error=text)
        self.texts[event] = text
