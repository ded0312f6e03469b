"""The registry of all kinds that the gateway accepts."""

from collections.abc import Mapping
from typing import Final

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.base import Kind, PodlessKind
from app.domain.kinds.foreign import next_step
from app.domain.kinds.job_registry import DIALECTS
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.plan import Manifest

PODLESS_KINDS: Final[dict[str, PodlessKind]] = {kind.kind: kind for kind in (SAMPLE_SET, SAMPLE_JOB)}
"""The kinds without pods, by name. Each has its own resource in the API."""


def registered() -> Mapping[str, Kind]:
    """Return all kinds by name."""
    kinds: list[Kind] = [*DIALECTS.values(), *PODLESS_KINDS.values()]
    return {kind.kind: kind for kind in kinds}


def _resource_of(api_version: object, kind: object) -> str | None:
    """Return the resource of a kind, or None if it is not known."""
    if not isinstance(kind, str):
        return None
    # Almost every document names a version that is served, and looking it up is cheaper than listing all kinds.
    if isinstance(api_version, str) and (api_version, kind) in DIALECTS:
        return DIALECTS[api_version, kind].resource
    found = registered().get(kind)
    return None if found is None else found.resource


def refuse_wrong_route(document: Manifest, resource: str, namespace: str) -> None:
    """Refuse a document of another system, and one of a known kind that belongs to another resource.

    Raises:
        InvalidManifest: the error names the next step, or the route of that kind.
    """
    kind = document.get("kind")
    found = _resource_of(document.get("apiVersion"), kind)
    if found is None:
        _refuse_foreign(document, resource)
        return
    if found == resource:
        return
    route = f"POST /api/v1/namespaces/{namespace}/{found}"
    error = FieldError(pointer="/kind", code="WrongRoute", detail=f"a {kind} has another route", accepted=route)
    raise InvalidManifest(f"a {kind} is not posted here but to {found}: {route}", code="WrongRoute", errors=[error])


def _refuse_foreign(document: Manifest, resource: str) -> None:
    """Raise InvalidManifest if the document is of another system."""
    step = next_step(document.get("apiVersion"), document.get("kind"), registered().values())
    if step is None:
        return
    own = [kind for kind in registered().values() if kind.resource == resource]
    accepted = ", ".join(f"{kind.kind} ({kind.api_versions[0]})" for kind in own)
    error = FieldError(pointer="/kind", code="UnknownKind", detail=step, accepted=accepted)
    raise InvalidManifest("the manifest is of another system", errors=[error])
