"""Manifests that are posted where another kind belongs."""

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds import registered
from app.domain.plan import Manifest


def refuse_wrong_route(document: Manifest, resource: str, namespace: str) -> None:
    """Let pass what belongs to this resource, and what is of no kind that is known.

    Raises:
        InvalidManifest: it belongs to another, which is named.
    """
    kind = document.get("kind")
    found = registered().get(kind) if isinstance(kind, str) else None
    if found is None or found.resource == resource:
        return
    right = found.resource
    route = f"POST /api/v1/namespaces/{namespace}/{right}"
    error = FieldError(pointer="/kind", code="WrongRoute", detail=f"a {kind} has another route", accepted=route)
    raise InvalidManifest(f"a {kind} is not posted here but to {right}: {route}", code="WrongRoute", errors=[error])
