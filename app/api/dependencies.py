"""What a handler gets with every request: the services, the caller, and what the caller may do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.api.broadcast import Broadcast
from app.api.parameters import check_namespace, refuse_unknown_query
from app.api.polling import Poller
from app.api.shared_polls import SharedPolls
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import NotFound
from app.services.access import Principal, Verb, require
from app.services.gateway import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One for each app: the services and what the API itself keeps."""

    services: Services
    poller: Poller
    broadcast: Broadcast
    polls: SharedPolls


@dataclass(frozen=True, slots=True)
class Caller:
    """One a request."""

    request: Request
    api: Api
    principal: Principal

    @property
    def services(self) -> Services:
        return self.api.services

    @property
    def name(self) -> str:
        """The actor in history rows."""
        return self.principal.name

    @property
    def administers(self) -> bool:
        return self.principal.administers

    def require(self, verb: Verb, namespace: str) -> None:
        """Let pass who may.

        Raises:
            InvalidParameter, NotFound, Forbidden.
        """
        check_namespace(namespace)
        if namespace not in self.services.namespaces:
            raise NotFound("there is no such namespace")
        require(self.principal, verb, namespace)

    def require_seen(self, namespace: str) -> None:
        """For an object that was asked for by uid: where it is not to be seen, it does not exist."""
        if namespace not in self.visible:
            raise NotFound("there is no such object")

    @property
    def visible(self) -> NamespaceSet:
        """The namespaces that this caller sees here."""
        return self.services.namespaces & NamespaceSet(only=self.principal.namespaces)

    def narrowed(self, asked: Sequence[str] | None) -> NamespaceSet:
        """Of the visible namespaces those that are asked for.

        Raises:
            InvalidParameter, NotFound.
        """
        if not asked:
            return self.visible
        for namespace in asked:
            self.require(Verb.READ, namespace)
        return NamespaceSet.of(*asked)


def api_of(request: Request) -> Api:
    api: Api = request.app.state.api
    return api


async def caller(request: Request) -> Caller:
    api = api_of(request)
    principal = await api.services.access.authenticate(request.headers.get("authorization"))
    refuse_unknown_query(request)
    return Caller(request, api, principal)


CallerDep = Annotated[Caller, Depends(caller)]
