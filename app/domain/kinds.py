"""All kinds of manifest that the gateway accepts, and the resource under which the API serves each of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from app.domain.cache.kinds import CACHE_KINDS
from app.domain.dialects.registry import DIALECTS
from app.domain.errors import FieldError, InvalidManifest
from app.domain.plan import Manifest

JOBS: Final = "jobs"
"""The resource of all kinds whose manifests become pods."""


class Kind(Protocol):
    """What every kind provides. A job kind (`Dialect`) adds its plan, a cache kind (`CacheKind`) its own rules."""

    @property
    def kind(self) -> str:
        """The manifest's `kind`."""
        ...

    @property
    def api_versions(self) -> tuple[str, ...]:
        """The values of `apiVersion` that are accepted, the canonical one first."""
        ...

    @property
    def mutable_fields(self) -> tuple[str, ...]:
        """JSON pointers below the manifest that PUT and PATCH may change; the step * stands for any one step."""
        ...

    @property
    def supports_pause(self) -> bool: ...

    @property
    def resource(self) -> str:
        """The collection under which the API serves it."""
        ...

    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        """Errors for what differs between two accepted manifests and may not."""
        ...

    def json_schema(self) -> dict[str, Any]:
        """JSON schema of the manifest."""
        ...


def registered() -> Mapping[str, Kind]:
    """Every kind by its name."""
    kinds: list[Kind] = [*DIALECTS.values(), *CACHE_KINDS.values()]
    return {kind.kind: kind for kind in kinds}


def refuse_wrong_route(document: Manifest, resource: str, namespace: str) -> None:
    """Refuse a document of a known kind that another resource serves.

    Raises:
        InvalidManifest: naming the route of that kind.
    """
    kind = document.get("kind")
    found = registered().get(kind) if isinstance(kind, str) else None
    if found is None or found.resource == resource:
        return
    right = found.resource
    route = f"POST /api/v1/namespaces/{namespace}/{right}"
    error = FieldError(pointer="/kind", code="WrongRoute", detail=f"a {kind} has another route", accepted=route)
    raise InvalidManifest(f"a {kind} is not posted here but to {right}: {route}", code="WrongRoute", errors=[error])
