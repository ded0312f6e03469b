"""Dependencies of the route handlers: the services, the authenticated caller, and what the caller may access."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.api.requests.parameters import check_namespace, refuse_unknown_query
from app.api.shared.broadcast import Broadcast
from app.api.shared.job_views import JobViewCache
from app.api.shared.polls import SharedPolls
from app.db.objects.idempotency import KeyId
from app.domain.access.actors import Actor
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import NotFound, no_such
from app.fairness.share import identify
from app.services.access import Principal, Verb, require
from app.services.gateway import Services
from app.services.submitting.objects import SubmitRequest
from app.telemetry.log_fields import note_actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What all requests of one application share: the services, and the caches of rendered answers."""

    services: Services
    job_views: JobViewCache
    broadcast: Broadcast
    polls: SharedPolls


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller of one request."""

    request: Request
    api: Api
    principal: Principal

    @property
    def services(self) -> Services:
        return self.api.services

    @property
    def actor(self) -> Actor:
        """The actor that history rows and scale records have."""
        return self.principal.actor

    @property
    def administers(self) -> bool:
        return self.principal.administers

    def submit_request(self, namespace: str) -> SubmitRequest:
        return SubmitRequest(namespace=namespace, actor=self.actor, administers=self.administers)

    def require(self, verb: Verb, namespace: str) -> None:
        """Raise an error unless the caller may do `verb` in the namespace.

        Raises:
            InvalidParameter: the namespace is not an RFC 1123 label.
            NotFound: the gateway does not serve the namespace, or the caller may not see it.
            Forbidden: the caller's role does not permit the verb.
        """
        check_namespace(namespace)
        if namespace not in self.services.namespaces:
            raise NotFound("there is no such namespace")
        require(self.principal, verb, namespace)

    async def require_submit(self, namespace: str, keys: Sequence[KeyId] = ()) -> None:
        """Raise an error unless the caller may store new objects of the namespace.

        A request that was answered under one of these idempotency keys may be repeated in spite of the cluster.

        Raises:
            InvalidParameter, Forbidden, NotFound: as `require_dry_run`.
            ClusterMismatch: the cluster is not the one of the database.
        """
        await self.require_dry_run(namespace, keys)
        await self.services.cluster_match.require(keys)

    async def require_dry_run(self, namespace: str, keys: Sequence[KeyId] = ()) -> None:
        """Raise an error unless the caller may submit objects to the namespace, and the cluster has it.

        Raises:
            InvalidParameter, Forbidden: as `require`.
            NotFound: as `require`, or the cluster has no such namespace.
        """
        self.require(Verb.SUBMIT, namespace)
        await self.services.namespace_check.require(namespace, keys)

    def turn_to_submit(self) -> AbstractAsyncContextManager[None]:
        """Return a context that waits until it is the turn of this token to submit an object, or to try to.

        Enter it when the body has been read, so that a slow client keeps no turn.

        Raises:
            Overloaded: too many submissions wait. Nothing was stored.
        """
        return self.services.submission_turns.turn(self.principal.id)

    def require_visible(self, namespace: str, what: str) -> None:
        """Raise NotFound unless the caller may see objects of the namespace. `what` names the resource of the object.

        Requests by uid use this check after they read the object. The error does not reveal that the object exists.
        """
        if namespace not in self.services.namespaces or self.principal.role_in(namespace) is None:
            raise no_such(what)

    @property
    def visible(self) -> NamespaceSet:
        """The namespaces that this gateway serves and this caller may see."""
        return self.services.namespaces & NamespaceSet(only=self.principal.namespaces)

    def select_namespaces(self, requested: Sequence[str] | None) -> NamespaceSet:
        """Return the requested namespaces, or all visible namespaces if none is requested.

        Raises:
            InvalidParameter, NotFound: as `require`, for any of the requested namespaces.
        """
        if not requested:
            return self.visible
        for namespace in requested:
            check_namespace(namespace, "query")
            self.require(Verb.READ, namespace)
        return NamespaceSet.of(*requested)


def api_of(request: Request) -> Api:
    api: Api = request.app.state.api
    return api


async def caller(request: Request) -> Caller:
    """Authenticate the request and refuse unknown query parameters."""
    api = api_of(request)
    principal = await api.services.access.authenticate(request.headers.get("authorization"))
    note_actor(principal.actor.name, principal.actor.id)
    identify(principal.id)
    # After the authentication, so that an unauthenticated client does not learn the parameters of a route.
    await refuse_unknown_query(request)
    return Caller(request, api, principal)


CallerDep = Annotated[Caller, Depends(caller)]
