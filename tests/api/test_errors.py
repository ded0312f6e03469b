"""Every error class has an HTTP status, and every problem has the same shape."""

import importlib
import pkgutil
from collections.abc import Iterator
from http import HTTPStatus

import pytest

import app
from app.api.errors import STATUSES, problem, problem_of, status_of
from app.domain.errors import DomainError, FieldError, NotFound


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
