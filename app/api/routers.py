"""Makes the routers of the API."""

from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute


def new_router(tag: str, **options: Any) -> APIRouter:
    """Return an empty router. The names of its routes are the ids of their operations."""
    return APIRouter(tags=[tag], generate_unique_id_function=_operation_id, **options)


def _operation_id(route: APIRoute) -> str:
    """Return the name of the route. It must never change, because generated clients name their methods after it."""
    return route.name
