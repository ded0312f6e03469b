"""Every error class has an HTTP status, and every problem has the same shape."""

import importlib
import pkgutil
from collections.abc import Iterator
from http import HTTPStatus

import httpx2
import pytest
from fastapi import FastAPI

import app
from app.api.answers.errors import STATUSES, install, problem, problem_of, status_of
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.errors import DomainError, FieldError, NotFound
from tests.support.telemetry.log_lines import Logged


def error_classes(base: type[DomainError] = DomainError) -> Iterator[type[DomainError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from error_classes(kind)


@pytest.fixture(scope="module", autouse=True)
def import_all_modules() -> None:
    for package in ("domain", "db", "services", "api"):
        root = importlib.import_module(f"{app.__name__}.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            importlib.import_module(module.name)


def test_every_domain_error_has_a_status() -> None:
    found = [kind for kind in error_classes() if kind.__module__.startswith("app.")]
    assert len(found) > 15
    for kind in found:
        assert status_of(kind) is not HTTPStatus.INTERNAL_SERVER_ERROR, kind
    assert set(STATUSES) <= set(found)


def test_an_unlisted_error_is_an_internal_error() -> None:
    assert status_of(DomainError) is HTTPStatus.INTERNAL_SERVER_ERROR


def test_a_problem_has_the_shape_of_rfc_9457() -> None:
    error = FieldError(pointer="/a", code="Bad", detail="is bad", accepted="good")
    response = problem_of(NotFound("there is none", errors=[error, FieldError(pointer="", code="C", detail="d")]))
    assert response.status_code == 404
    assert response.media_type == "application/problem+json"
    assert bytes(response.body) == (
        b'{"type":"urn:jobgate:problem:NotFound","title":"Not Found","status":404,"detail":"there is none",'
        b'"code":"NotFound","errors":[{"pointer":"/a","code":"Bad","detail":"is bad","accepted":"good"},'
        b'{"pointer":"","code":"C","detail":"d"}]}'
    )


def test_a_problem_has_the_headers_of_its_status() -> None:
    assert problem(401, "A", "b").headers["www-authenticate"].startswith("Bearer")
    assert problem(503, "A", "b").headers["retry-after"] == "1"
    assert problem(405, "A", "b", headers={"Allow": "GET"}).headers["allow"] == "GET"


async def test_errors_of_the_server_are_logged_once_per_minute_and_code(logged: Logged) -> None:
    failing = FastAPI()
    install(failing)

    @failing.get("/{code}")
    async def fail(code: str) -> None:
        raise NotFound("there is none") if code == "NotFound" else DatabaseUnavailable("no connection", code=code)

    transport = httpx2.ASGITransport(failing)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        statuses = [(await client.get(path)).status_code for path in ("/A", "/A", "/A", "/B", "/NotFound")]
    assert statuses == [503, 503, 503, 503, 404]
    lines = [(line["path"], line["code"], line["dropped"]) for line in logged.named("request.not_served")]
    assert lines == [("/A", "A", 0), ("/B", "B", 0)]
