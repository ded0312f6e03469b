"""Makes the routers of the API, and the routes that are requested most."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.answers.errors import response_to
from app.domain.errors import DomainError

Resolve: TypeAlias = Callable[[Request], Awaitable[Mapping[str, Any]]]
"""Returns the arguments of the endpoint for a request. It raises what FastAPI and the dependencies would raise."""


def new_router(tag: str, **options: Any) -> APIRouter:
    """Return an empty router. The names of its routes are the ids of their operations."""
    return APIRouter(tags=[tag], generate_unique_id_function=_operation_id, **options)


class ResolvedRoute(APIRoute):
    """A route that resolves the arguments of its endpoint by a function of its own.

    FastAPI only documents it, by the signature of the endpoint: to resolve the parameters of a poll, FastAPI needs more
    time than jobgate for the whole poll.
    """

    resolve: Resolve
    methods: set[str]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await self.endpoint(**await self.resolve(request))
        except (DomainError, RequestValidationError) as error:
            response = await response_to(error, request)
        await response(scope, receive, send)


class FirstRoutes:
    """Tries resolved routes before FastAPI's router and its layers, those with the longest paths first."""

    def __init__(self, app: ASGIApp, routes: Iterable[ResolvedRoute]) -> None:
        self._app = app
        self._routes = sorted(routes, key=lambda route: -len(route.path))

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        route = self._find(scope) if scope["type"] == "http" else None
        return (self._app if route is None else route.answer)(scope, receive, send)

    def _find(self, scope: Scope) -> ResolvedRoute | None:
        """Return the route of the request, and add it and the parameters of its path to the scope."""
        for route in self._routes:
            if scope["method"] in route.methods and (found := route.path_regex.fullmatch(scope["path"])):
                scope["route"], scope["path_params"] = route, found.groupdict()
                return route
        return None


def add_resolved_route(
    router: APIRouter, path: str, endpoint: Callable[..., Any], resolve: Resolve, *, method: str = "GET", **options: Any
) -> None:
    """Add a route that FastAPI documents and does not resolve."""
    router.add_api_route(path, endpoint, methods=[method], route_class_override=ResolvedRoute, **options)
    route = router.routes[-1]
    assert isinstance(route, ResolvedRoute)
    route.resolve = resolve


class Parameter(NamedTuple):
    """A parameter of a resolved route. If a request lacks it, the argument is None.

    Args:
        location: path, query or header.
        alias: its name in the request.
        kind: the type that checks its value, and that also documents it.
    """

    location: str
    alias: str
    kind: TypeAdapter[Any]


def arguments_of(request: Request, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the arguments for these parameters, checked as FastAPI checks them.

    Raises:
        RequestValidationError: some are not valid.
    """
    arguments: dict[str, Any] = {}
    errors: list[Any] = []
    for name, (location, alias, kind) in parameters.items():
        value = _GIVEN[location](request).get(alias)
        try:
            arguments[name] = None if value is None else kind.validate_python(value)
        except ValidationError as error:
            errors += [{**item, "loc": (location, alias)} for item in error.errors()]
    if errors:
        raise RequestValidationError(errors)
    return arguments


_GIVEN: Final[Mapping[str, Callable[[Request], Mapping[str, Any]]]] = {
    "path": lambda request: request.path_params,
    "query": lambda request: request.query_params if request.scope["query_string"] else {},
    "header": lambda request: request.headers,
}


def _operation_id(route: APIRoute) -> str:
    """Return the name of the route. It must never change, because generated clients name their methods after it."""
    return route.name
