"""What the routes have in common: how FastAPI calls them and what they depend on."""

import inspect
from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.running.application import create_app


def dependants(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for each in dependant.dependencies:
        yield from dependants(each)


def test_routes_and_their_dependencies_run_in_the_event_loop() -> None:
    """FastAPI calls a function without `async` in a thread, which costs more than reading any parameter."""
    called = {
        each.call
        for route in create_app().routes
        if isinstance(route, APIRoute)
        for each in dependants(route.dependant)
    }
    assert len(called) > 50
    assert not [call for call in called if not inspect.iscoroutinefunction(call)]
