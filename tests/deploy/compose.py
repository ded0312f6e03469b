"""docker-compose.yml as `docker compose` reads it: with merged mappings, and with the defaults of its variables."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = ROOT / "docker-compose.yml"
IMAGE = "jobgate:local"
# The innermost `${NAME:-default}` or `${NAME}`. A default may contain another variable.
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Z0-9_]+)(?::-(?P<default>[^${}]*))?\}")

Service = dict[str, Any]


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Replace variables by their values or defaults. A variable with neither is an error."""
    while found := _VARIABLE.search(text):
        value = variables.get(found["name"]) or found["default"]
        assert value is not None, f"{found[0]} has neither a value nor a default"
        text = text[: found.start()] + value + text[found.end() :]
    return text


def model(**variables: str) -> dict[str, Any]:
    text = interpolated(COMPOSE_FILE.read_text(encoding="utf-8"), {"HOME": "/home/user"} | variables)
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def services(**variables: str) -> dict[str, Service]:
    found: dict[str, Service] = model(**variables)["services"]
    return found


def runs_jobgate(service: Service) -> bool:
    """Whether the service runs the command of the image, and not another program of it."""
    return bool(service["image"] == IMAGE) and "entrypoint" not in service


def profiles(service: Service) -> set[str]:
    """Return the profiles that start the service; empty if every profile does."""
    return set(service.get("profiles", ()))
