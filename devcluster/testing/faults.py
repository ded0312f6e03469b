"""Injected faults, for tests: the failures that a client of a real API server meets sooner or later.

`POST /devcluster/faults` adds a rule, a JSON object:

    verb, resource, subresource, namespace, name   what it matches; left out means any. Verbs are RBAC's words:
                                       get list watch create update patch delete deletecollection
    count          how many requests it hits before it ends (default: no end)
    probability    hit only this share of the requests (default 1)
    delayMs        wait before anything else
    status         answer with this code instead of doing the request (429, 500, 503 ...); a watch too
    retryAfter     seconds, as a Retry-After header
    message        the Status message
    gone           410: `"http"` answers with HTTP 410, `"event"` with an ERROR event on a watch
    cutAfter       a watch: break the connection in the middle of the line after this many events
    silentAfter    a watch: after this many events send nothing more, and keep the connection open
    loseResponse   do the request, then drop the connection without an answer

The answer is `{"id": n}`. `GET` lists the rules with the hits so far, `DELETE` clears them all. The token is needed.
`POST /devcluster/compact` forgets the watch window, so that every older resourceVersion is 410.
"""

import random
from typing import Any

import msgspec

from devcluster.errors import bad_request
from devcluster.server.addressing import RequestInfo


class Rule(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
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
    lose_response: bool = False
    id: int = 0
    hits: int = 0

    def matches(self, info: RequestInfo) -> bool:
        address = info.address
        wanted = (self.verb, self.resource, self.subresource, self.namespace, self.name)
        found = (info.verb, address.resource.plural, address.subresource, address.namespace, address.name)
        return all(want in ("*", have) for want, have in zip(wanted, found, strict=True))


NO_FAULT = Rule()


class Faults:
    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._next_id = 0

    def add(self, body: bytes) -> Rule:
        try:
            rule = msgspec.json.decode(body, type=Rule)
        except msgspec.DecodeError as error:
            raise bad_request(f"a fault rule: {error}") from error
        self._next_id += 1
        rule.id = self._next_id
        rule.hits = 0
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        self._rules.clear()

    def listed(self) -> list[dict[str, Any]]:
        return [msgspec.to_builtins(rule) for rule in self._rules]

    def hit(self, info: RequestInfo) -> Rule:
        """Return the first live rule that this request runs into, counting it."""
        for rule in self._rules:
            if rule.count is not None and rule.hits >= rule.count:
                continue
            if rule.matches(info) and random.random() < rule.probability:  # noqa: S311  not for secrets
                rule.hits += 1
                return rule
        return NO_FAULT
