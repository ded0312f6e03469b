"""The application around its routes."""

from fastapi.routing import APIRoute

from app.running.application import create_app


def test_applications_share_their_routes() -> None:
    """FastAPI needs about 2 ms to build a route. Each worker of `serve --workers` makes an application."""
    first, second = ([route for route in create_app().routes if isinstance(route, APIRoute)] for _ in range(2))
    assert {route.path for route in first} >= create_app().openapi()["paths"].keys()
    assert all(one is other for one, other in zip(first, second, strict=True))
