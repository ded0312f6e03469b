"""Injected faults: the failures that a client of a real API server meets sooner or later.

`POST /devcluster/faults` adds a rule, a JSON object. All fields are optional:

    verb, resource, subresource, namespace, name
                   which requests the rule matches (default: all). Verbs are those of RBAC:
                   get list watch create update patch delete deletecollection
    count          the number of requests that the rule hits (default: no limit)
    probability    the share of the matching requests that the rule hits (default: 1)
    delayMs        milliseconds to wait before anything else
    status         the HTTP status to answer with, also to a watch; the request has no effect (429, 500, 503 ...)
    retryAfter     the Retry-After header of that answer, in seconds
    message        the message of that answer
    gone           `"http"`: answer with HTTP 410; `"event"`: send an ERROR event with code 410 on a watch
    cutAfter       on a watch: break the connection in the middle of a line, after this many events
    silentAfter    on a watch: send nothing more after this many events, and keep the connection open
    merge          a merge patch (RFC 7386) that changes the object of a create, update or patch, as a mutating
                   webhook does
    warning        a warning in the answer to a create, as a validating webhook gives it
    loseResponse   let the request take effect, then break the connection without an answer

The answer is `{"id": n}`. `GET` lists the rules with their hits, `DELETE` removes all rules.
`POST /devcluster/compact` empties the watch window, so that every older resourceVersion and page token gets a 410.
`POST /devcluster/kueue` with `{"runs": false}` stops the controller of Kueue, and with `true` it goes on. What its
webhooks do to requests meanwhile is a rule.
Each request needs the token of the cluster.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec
from typing_extensions import override

from devcluster.errors import StatusError, bad_request, expired, unknown_resource
from devcluster.formats import patches
from devcluster.formats.objects import Object
from devcluster.registry.store import ObjectStore
from devcluster.server.addressing import RequestInfo
from devcluster.server.interception import ConnectionDroppedError, Interceptor
from devcluster.server.lists import Lister
from devcluster.server.watches import error_line

_Body = TypeVar("_Body")
_REASONS = {403: "Forbidden", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


class Rule(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A fault and the requests that it hits. The module's docstring describes the fields."""

    verb: str = "*"
    resource: str = "*"
    subresource: str = "*"
    namespace: str = "*"
    name: str = "*"
    count: int | None = None
    probability: float = 1.0
    delay_ms: int = 0
    status: int = 0
    retry_after: int | None = None
    message: str = "an injected fault"
    gone: str = ""
    cut_after: int | None = None
    silent_after: int | None = None
    merge: dict[str, Any] = {}
    warning: str = ""
    lose_response: bool = False
    id: int = 0
    hits: int = 0

    def matches(self, info: RequestInfo) -> bool:
        address = info.address
        wanted = (self.verb, self.resource, self.subresource, self.namespace, self.name)
        found = (info.verb, address.resource.plural, address.subresource, address.namespace, address.name)
        return all(want in ("*", have) for want, have in zip(wanted, found, strict=True))

    @property
    def is_used_up(self) -> bool:
        return self.count is not None and self.hits >= self.count


class KueueControl(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whether the controller of Kueue reconciles."""

    runs: bool


class FaultInterceptor(Interceptor):
    """Applies a rule to one request."""

    def __init__(self, rule: Rule, info: RequestInfo) -> None:
        self._rule = rule
        self._is_watch = info.verb == "watch"
        self.drops_answer = rule.lose_response
        self.warnings = (rule.warning,) if rule.warning else ()

    @override
    async def before(self) -> None:
        rule = self._rule
        if rule.delay_ms:
            await asyncio.sleep(rule.delay_ms / 1000)
        # Only a watch has a stream for an ERROR event.
        if rule.gone == "http" or (rule.gone and not self._is_watch):
            raise expired(rule.message)
        if rule.status:
            reason = _REASONS.get(rule.status, "")
            raise StatusError(rule.status, reason, rule.message, retry_after=rule.retry_after)

    @override
    def admit(self, obj: Object) -> Object:
        return patches.apply(patches.MERGE, obj, self._rule.merge, "")

    @override
    async def watch_lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        rule = self._rule
        if rule.gone == "event":
            yield error_line(expired("too old resource version: injected"))
            return
        sent = 0
        async for line in lines:
            if rule.silent_after is not None and sent >= rule.silent_after:
                # Waits until the client or the server ends the connection.
                await asyncio.Event().wait()
            if rule.cut_after is not None and sent >= rule.cut_after:
                yield line[: len(line) // 2]
                raise ConnectionDroppedError
            yield line
            sent += 1


class FaultInjection:
    """The extension of the API server that serves /devcluster/ and applies the rules that tests post there."""

    prefix = "/devcluster/"

    def __init__(self, store: ObjectStore, lister: Lister, kueue_runs: asyncio.Event) -> None:
        self._store = store
        self._lister = lister
        self._kueue_runs = kueue_runs
        self._rules: list[Rule] = []
        self._next_id = 0

    def serve(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        match method, path.removeprefix(self.prefix):
            case "POST", "compact":
                return 200, {"resourceVersion": str(self._compact())}
            case "POST", "kueue":
                return 200, {"runs": self._run_kueue(body)}
            case "POST", "faults":
                return 201, {"id": self._add(body).id}
            case "DELETE", "faults":
                self._rules.clear()
                return 200, {"items": []}
            case _, "faults":
                return 200, {"items": [msgspec.to_builtins(rule) for rule in self._rules]}
        raise unknown_resource()

    def intercept(self, info: RequestInfo) -> Interceptor:
        """Return the interceptor of the first rule that hits this request, and count the hit."""
        for rule in self._rules:
            if not rule.is_used_up and rule.matches(info) and random.random() < rule.probability:  # noqa: S311
                rule.hits += 1
                return FaultInterceptor(rule, info)
        return Interceptor()

    def _run_kueue(self, body: bytes) -> bool:
        runs = _decode(body, KueueControl, "the state of Kueue").runs
        if runs:
            self._kueue_runs.set()
        else:
            self._kueue_runs.clear()
        return runs

    def _add(self, body: bytes) -> Rule:
        rule = _decode(body, Rule, "a fault rule")
        self._next_id += 1
        rule.id, rule.hits = self._next_id, 0
        self._rules.append(rule)
        return rule

    def _compact(self) -> int:
        for log in self._store.logs.values():
            log.compact_all()
        self._lister.forget()
        return self._store.version


def _decode(body: bytes, kind: type[_Body], what: str) -> _Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise bad_request(f"{what}: {error}") from error
