"""Reads what jobs have used.

`make openapi` generates this module from its asynchronous counterpart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jobgate.client.calls import UsageCalls, UsageFilter
from jobgate.client.types import JobUsage, UsagePage
from jobgate.client.wire import query_of

if TYPE_CHECKING:
    from jobgate.client.synchronous.client import Client

_ALL = UsageFilter()
# Seconds in which the gateway reads a page of groups while a CSV is sent: if it is overloaded, it asks again for 60 s;
# then it waits up to 10 s each for a turn, memory and a connection, and up to 15 s for each of three statements.
_SILENCE: Final = 150.0


class Usage:
    """What the jobs have used that the user may see."""

    def __init__(self, client: "Client", namespace: str) -> None:
        self._client = client
        self._calls = UsageCalls(namespace=namespace)

    def groups(self, by: Sequence[str] = (), where: UsageFilter = _ALL) -> UsagePage:
        """Return the usage by dimensions, such as namespace, user, day or label:team, with the items of all pages."""
        call = self._calls.groups(by, where)
        page = self._client.send(call)
        items, token = list(page.items), page.next_page_token
        while token is not None:
            following = self._client.send(replace(call, query=call.query + query_of(page_token=token)))
            items += following.items
            token = following.next_page_token
        return UsagePage(
            first_day=page.first_day,
            last_day=page.last_day,
            by=page.by,
            observed_at=page.observed_at,
            currency=page.currency,
            items=items,
            next_page_token=None,
        )

    def csv(self, by: Sequence[str] = (), where: UsageFilter = _ALL) -> str:
        """Return what `groups` returns as CSV, with exact seconds.

        Raises:
            CutOffError: the gateway could not complete it.
        """
        call = self._calls.csv(by, where)
        with self._client.stream(call, read_timeout=_SILENCE, is_repeated=True) as answer:
            answer.read()
            return answer.text

    def csv_lines(self, by: Sequence[str] = (), where: UsageFilter = _ALL) -> Iterator[str]:
        """Yield the lines of `csv` while they arrive, without line ends.

        Raises:
            CutOffError: after some lines, because the gateway could not complete them.
        """
        call = self._calls.csv(by, where)
        with self._client.stream(call, read_timeout=_SILENCE, is_repeated=True) as answer:
            for line in self._client.lines_of(answer):
                yield line.removesuffix("\r")

    def of_job(self, name: str, *, namespace: str | None = None) -> JobUsage:
        """Return what one job has used until now."""
        return self._client.send(self._calls.of_job(name, namespace))
