"""Manifests that are posted where another kind belongs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from app.domain.cache.kinds import CACHE_KINDS
from app.domain.dialects.registry import DIALECTS
from app.domain.errors import FieldError, InvalidManifest
from app.domain.plan import Manifest

JOBS: Final = "jobs"
_RESOURCES: Final[Mapping[str, str]] = MappingProxyType(
    {kind: JOBS for _, kind in DIALECTS} | {kind.kind: kind.resource for kind in CACHE_KINDS.values()}
)


def refuse_wrong_route(document: Manifest, resource: str, namespace: str) -> None:
    """Let pass what belongs to this resource, and what is of no kind that is known.

    Raises:
        InvalidManifest: it belongs to another, which is named.
    """
    kind = document.get("kind")
    right = _RESOURCES.get(kind) if isinstance(kind, str) else None
    if right is None or right == resource:
        return
    route = f"POST /api/v1/namespaces/{namespace}/{right}"
    error = FieldError(pointer="/kind", code="WrongRoute", detail=f"a {kind} has another route", accepted=route)
    raise InvalidManifest(f"a {kind} is not posted here but to {right}: {route}", code="WrongRoute", errors=[error])
