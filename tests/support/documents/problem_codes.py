"""Finds the codes of all problems that the source code of the gateway can answer with."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.api.answers import errors as http_errors
from app.api.answers.errors import HTTP_CODES
from app.db.postgres import errors as db_errors
from app.domain.errors import DomainError
from app.services.oidc import http as oidc_errors

# These modules are imported for their classes, too, which are found as subclasses of DomainError.
_ERRORS: Final = (http_errors, db_errors, oidc_errors)
APP: Final = Path(__file__).parents[3] / "app"
# These modules answer no requests.
_ELSEWHERE: Final = (
    "loops",
    "domain/cache/manifests",
    "domain/kinds/samples/specs/mount_options.py",
    "domain/cache/values.py",
    "db/postgres/migrations.py",
)
# Functions that make a problem, and the position of their argument `code`.
_FUNCTIONS: Final = {"problem": 1, "parameter_error": 2, "invalid_manifest": 0, "_Shape": 1}


def codes_in_source() -> dict[str, str]:
    """Return the codes, each with a place where it is set."""
    found = {kind.default_code: kind.__name__ for kind in _error_classes(DomainError) if kind is not DomainError}
    found |= dict.fromkeys(HTTP_CODES.values(), "api/answers/errors.py")
    makers = {kind.__name__ for kind in _error_classes(DomainError)}
    for path in sorted(APP.rglob("*.py")):
        name = path.relative_to(APP).as_posix()
        if not name.startswith(_ELSEWHERE):
            calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
            # The guard against browsers makes a problem of one field error.
            of_module = makers | {"FieldError"} if name == "api/layers/browsers.py" else makers
            for call in calls:
                for code in _codes(call, of_module):
                    found[code] = f"{name}:{call.lineno}"
    return found


def _error_classes(kind: type[DomainError]) -> Iterator[type[DomainError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _error_classes(below)


def _codes(call: ast.Call, makers: set[str]) -> Iterator[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    values = [keyword.value for keyword in call.keywords if keyword.arg == "code" and name in makers]
    place = _FUNCTIONS.get(name)
    if place is not None:
        values += call.args[place : place + 1]
    for value in values:
        # Either value of a conditional expression may be the code.
        for node in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
