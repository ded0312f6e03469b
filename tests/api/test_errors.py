"""Every refusal there is has a status, and every problem the same shape."""

import importlib
import pkgutil
from collections.abc import Iterator
from http import HTTPStatus

import pytest

import app
from app.api.errors import STATUSES, problem, problem_of, status_of
from app.domain.errors import DomainError, FieldError, NotFound


def refusals(base: type[DomainError] = DomainError) -> Iterator[type[DomainError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from refusals(kind)


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported() -> None:
    for package in ("domain", "db", "services", "api"):
        root = importlib.import_module(f"{app.__name__}.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            importlib.import_module(module.name)


def test_every_refusal_has_a_status() -> None:
    found = [kind for kind in refusals() if kind.__module__.startswith("app.")]
    assert len(found) > 15
    for kind in found:
        assert status_of(kind) is not HTTPStatus.INTERNAL_SERVER_ERROR, kind
    assert set(STATUSES) <= set(found)


def test_what_is_no_refusal_of_ours_is_our_fault() -> None:
    assert status_of(DomainError) is HTTPStatus.INTERNAL_SERVER_ERROR


def test_the_shape_of_a_problem() -> None:
    error = FieldError(pointer="/a", code="Bad", detail="is bad", accepted="good")
    response = problem_of(NotFound("there is none", errors=[error, FieldError(pointer="", code="C", detail="d")]))
    assert response.status_code == 404
    assert response.media_type == "application/problem+json"
    assert bytes(response.body) == (
        b'{"type":"urn:jobgate:problem:NotFound","title":"Not Found","status":404,"detail":"there is none",'
        b'"code":"NotFound","errors":[{"pointer":"/a","code":"Bad","detail":"is bad","accepted":"good"},'
        b'{"pointer":"","code":"C","detail":"d"}]}'
    )


def test_headers_that_statuses_need() -> None:
    assert problem(401, "A", "b").headers["www-authenticate"].startswith("Bearer")
    assert problem(503, "A", "b").headers["retry-after"] == "1"
    assert problem(405, "A", "b", headers={"Allow": "GET"}).headers["allow"] == "GET"
