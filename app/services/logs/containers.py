"""Logs of containers: which one is requested, and the cluster, which has it while its pod exists.

Like `cluster_dry_run` and `gang_apis`, this module calls the cluster. It only reads logs there.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from typing_extensions import override

from app.domain.errors import NotFound, Unavailable
from app.domain.status.log_choice import has_log, why_no_log
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence
from app.k8s.api import KubeApi
from app.k8s.errors import KubeBadRequest, KubeError, KubeNotFound, KubeServerError, KubeStatusError
from app.k8s.logs import read_log
from app.services.logs.selecting import EVERYTHING, LineSelection
from app.services.reading.jobs import ReplicaHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """The requested part of a log. `tail_lines` None means all lines.

    `previous` means the log of the container before the kubelet last restarted it in place, and `run` the number of
    another run. `since` is for the cluster, which knows seconds, and `selection` is exact.
    """

    namespace: str
    pod: str
    container: str
    follow: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    previous: bool = False
    run: int | None = None
    selection: LineSelection = EVERYTHING
    as_lines: bool = False
    """Whether the caller needs the lines with their places and times, not only their text."""
    is_raw: bool = False
    """Whether the caller needs only bytes of the log, and no lines of jobgate between them."""

    @property
    def is_plain(self) -> bool:
        """Whether the cluster can return the requested text as it is."""
        return self.selection.is_everything and not self.as_lines


class LogReader(Protocol):
    """Reads logs of pods from the cluster."""

    def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Yield the log in pieces.

        Raises:
            NotFound: there is no such pod, or its container has not started.
            Unavailable: the cluster does not answer, or refuses the request.
        """
        ...


class ClusterLogs(LogReader):
    """Reads logs through the Kubernetes API."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        pieces = read_log(
            self._api,
            request.namespace,
            request.pod,
            request.container,
            tail_lines=request.tail_lines,
            since_time=request.since,
            timestamps=request.timestamps,
            follow=request.follow,
            previous=request.previous,
        )
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except (KubeNotFound, KubeBadRequest) as error:
            raise NotFound(f"the cluster has no such log: {error.message}", code="NoLog") from error
        # The API server reads a log from the node of the pod, and reports the failure of that as an error of its own.
        except KubeServerError as error:
            raise Unavailable(
                f"the cluster cannot read the log from the node of the pod: {error.message}", code="ClusterUnreachable"
            ) from error
        except KubeStatusError as error:
            raise Unavailable(
                f"the cluster refuses access to the log: {error.message}", code="ClusterDenied"
            ) from error
        except KubeError as error:
            raise Unavailable(f"the cluster does not answer: {error}", code="ClusterUnreachable") from error


def attempt_of(story: ReplicaHistory, number: int) -> Attempt | None:
    """Return the attempt with this number; None if the replica has no such attempt."""
    return next((attempt for attempt in story.attempts if attempt.number == number), None)


def container_of(story: ReplicaHistory, number: int, requested: str | None) -> str | None:
    """Return the name of the requested container of an attempt, or of its default one.

    Return None if the attempt has no such container, or none that is known.
    """
    attempt = attempt_of(story, number)
    if attempt is None or requested is None:
        return attempt.log_container if attempt is not None else None
    return requested if requested in (container.name for container in attempt.containers) else None


def no_log(
    story: ReplicaHistory, number: int, container: str | None = None, refusal: NotFound | None = None
) -> NotFound:
    """Return the error of an attempt without a log, with the reason of the cluster if it gave one.

    It names the attempts that have a log, and the other containers of this attempt that do.
    """
    attempt = attempt_of(story, number)
    if refusal is not None:
        reason = refusal.message
    else:
        reason = why_no_log(attempt) if attempt is not None else f"no log of attempt {number} was stored"
    known = name_accepted(story, number, container, same_attempt=True)
    return NotFound(f"{story.stored.replica.key}: {reason}{known}", code="NoLog")


def name_accepted(story: ReplicaHistory, number: int, container: str | None, *, same_attempt: bool) -> str:
    """Return the logs that exist in place of a missing one, as the end of a sentence: those of other attempts, and with
    `same_attempt` those of other containers.
    """
    attempt = attempt_of(story, number) if same_attempt else None
    has_logs = attempt is not None and attempt.evidence is not Evidence.UNAVAILABLE
    ran = [status.name for status in attempt.containers if status.has_run] if attempt is not None and has_logs else []
    containers = [name for name in ran if name != container]
    attempts = [str(other.number) for other in story.attempts if other.number != number and has_log(other, container)]
    accepted = [f"container {' or '.join(containers)}"] if containers else []
    accepted += [f"attempt {' or '.join(attempts)}"] if attempts else []
    return f"; accepted: {', or '.join(accepted)}" if accepted else ""
