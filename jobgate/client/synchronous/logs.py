"""What a client does with the logs of jobs.

`make openapi` generates this module from its asynchronous counterpart.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from jobgate.client.calls import JobCalls, Ref
from jobgate.client.errors import OverloadedError, UnavailableError, UnreachableError
from jobgate.client.log_bytes import readable
from jobgate.client.log_options import LogOptions

if TYPE_CHECKING:
    from jobgate.client.synchronous.client import Client

# Seconds without data after which a log that is not followed fails.
_SILENCE: Final = 45.0
# Seconds before a download continues, and without a new byte after which it fails.
_AGAIN: Final = 1.0
_PATIENCE: Final = 60.0
_TRANSIENT: Final = (UnreachableError, UnavailableError, OverloadedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """An open log.

    Args:
        is_live: whether its end comes from the cluster.
        is_kept: whether it is whole, from the log store of the gateway.
        is_truncated: whether earlier lines of a stored log are missing.
        lines: its lines, without line ends. Bytes that are not UTF-8 are surrogates (`surrogateescape`).
        attempt: the number of the attempt. Unless one is requested, it is the newest that has a log.
        newest_attempt: the number of the newest attempt of the replica.
        container: the name of the container.
        run: the number of the run of the container, if the log is kept.
        size: how many bytes of the log are kept, if it is kept.
        missing: what is missing of a kept log, in words.
    """

    is_live: bool
    is_kept: bool = False
    is_truncated: bool
    lines: Iterator[str]
    attempt: int | None = None
    newest_attempt: int | None = None
    container: str | None = None
    run: int | None = None
    size: int | None = None
    missing: str = ""


class JobLogs:
    """The logs of the jobs of a gateway."""

    def __init__(self, client: "Client", calls: JobCalls) -> None:
        self._client = client
        self._calls = calls

    def lines(self, ref: Ref, namespace: str | None, options: LogOptions) -> Iterator[str]:
        """Yield the lines of a log, with U+FFFD for each byte that is not UTF-8."""
        with self.open(ref, namespace, options) as log:
            for line in log.lines:
                yield readable(line)

    @contextmanager
    def open(self, ref: Ref, namespace: str | None, options: LogOptions) -> Iterator[Log]:
        read_timeout = None if options.get("follow") else _SILENCE
        with self._client.stream(self._calls.log(ref, namespace, options), read_timeout=read_timeout) as answer:
            headers = answer.headers
            sources = headers.get("Jobgate-Log-Source", "").split(", ")
            yield Log(
                is_live="live" in sources,
                is_kept="kept" in sources,
                is_truncated=headers.get("Jobgate-Log-Truncated") == "true",
                lines=self._client.lines_of(answer),
                attempt=_number(headers.get("Jobgate-Log-Attempt")),
                newest_attempt=_number(headers.get("Jobgate-Newest-Attempt")),
                container=headers.get("Jobgate-Log-Container"),
                run=_number(headers.get("Jobgate-Log-Run")),
                size=_number(headers.get("Jobgate-Log-Size")),
                missing=headers.get("Jobgate-Log-Missing", ""),
            )

    def save(self, ref: Ref, file: BinaryIO, namespace: str | None, options: LogOptions) -> int:
        """Write the bytes of a log to a file, and return their number.

        After a lost connection, it continues with the first byte that is missing.
        """
        written, last_at = 0, time.monotonic()
        chosen = LogOptions() | options
        while True:
            call = self._calls.log(ref, namespace, chosen | LogOptions(offset=written))
            try:
                with self._client.stream(call, read_timeout=_SILENCE) as answer:
                    # Meanwhile, the newest log may become another one.
                    if (attempt := _number(answer.headers.get("Jobgate-Log-Attempt"))) is not None:
                        chosen |= LogOptions(attempt=attempt)
                    if (run := _number(answer.headers.get("Jobgate-Log-Run"))) is not None:
                        chosen |= LogOptions(run=run, previous=False)
                    for chunk in answer.iter_bytes():
                        file.write(chunk)
                        written, last_at = written + len(chunk), time.monotonic()
            except _TRANSIENT:
                if time.monotonic() - last_at > _PATIENCE:
                    raise
            else:
                return written
            time.sleep(_AGAIN)


def _number(text: str | None) -> int | None:
    """Return the number in a header. Gateways of earlier versions do not send it."""
    return int(text) if text is not None and text.isdecimal() else None
