"""The registry of all kinds, and the refusal of manifests whose kind it lacks. A new kind is a package and a line."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.kinds.base import Kind
from app.domain.kinds.di_job import DIJobKind
from app.domain.kinds.foreign import group_of, next_step
from app.domain.kinds.generic_job import GenericJobKind
from app.domain.kinds.job_kind import JobKind
from app.domain.kinds.mx_job import MxJobKind
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.training_job import TrainingJobKind
from app.domain.plan import Manifest
from app.domain.suggestions import nearest

_ALL: Final[tuple[JobKind[Any] | SampleKind, ...]] = (
    GenericJobKind(),
    MxJobKind(),
    DIJobKind(),
    TrainingJobKind(),
    SAMPLE_SET,
    SAMPLE_JOB,
)

JOB_KINDS: Final[Mapping[tuple[str, str], JobKind[Any]]] = MappingProxyType(
    {(version, kind.name): kind for kind in _ALL if isinstance(kind, JobKind) for version in kind.api_versions}
)
"""The job kinds, by apiVersion and name."""
SAMPLE_KINDS: Final[dict[str, SampleKind]] = {kind.name: kind for kind in _ALL if isinstance(kind, SampleKind)}
"""The sample kinds, by name. Each has its own resource in the API."""


def all_kinds() -> Mapping[str, Kind]:
    """Return all kinds by name."""
    kinds: list[Kind] = [*JOB_KINDS.values(), *SAMPLE_KINDS.values()]
    return {kind.name: kind for kind in kinds}


def find(api_version: object, name: object) -> JobKind[Any]:
    """Return the kind of a job's manifest with this apiVersion and kind.

    Raises:
        InvalidManifest: no kind has them; the error names the wrong field and the known kinds and versions.
    """
    if isinstance(api_version, str) and isinstance(name, str) and (api_version, name) in JOB_KINDS:
        return JOB_KINDS[api_version, name]
    raise InvalidManifest("the kind of the manifest is not known here", errors=_refusals(api_version, name))


def _resource_of(api_version: object, kind: object) -> str | None:
    """Return the resource of a kind, or None if it is not known."""
    if not isinstance(kind, str):
        return None
    # Almost every document names a version that is served, and looking it up is cheaper than listing all kinds.
    if isinstance(api_version, str) and (api_version, kind) in JOB_KINDS:
        return JOB_KINDS[api_version, kind].resource
    found = all_kinds().get(kind)
    return None if found is None else found.resource


def refuse_wrong_route(document: Manifest, resource: str, namespace: str) -> None:
    """Refuse a document whose kind belongs to another resource of this API, or to another system such as Kubeflow.

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
    step = next_step(document.get("apiVersion"), document.get("kind"), all_kinds().values())
    if step is None:
        return
    own = [kind for kind in all_kinds().values() if kind.resource == resource]
    accepted = ", ".join(f"{kind.name} ({kind.api_versions[0]})" for kind in own)
    error = FieldError(pointer="/kind", code="UnknownKind", detail=step, accepted=accepted)
    raise InvalidManifest("the manifest is of another system", errors=[error])


def _refusals(api_version: object, name: object) -> list[FieldError]:
    kinds = list(dict.fromkeys(JOB_KINDS.values()))
    for kind in kinds:
        # The kind is known, so only the version is wrong.
        if kind.name == name:
            groups = {group_of(version) for version in kind.api_versions}
            other = "version" if group_of(api_version) in groups else "group"
            detail = f"{name} belongs to another {other}"
            return [_refusal("/apiVersion", api_version, detail, " or ".join(kind.api_versions))]
    known = [kind.name for kind in kinds]
    meant = nearest(name, known) if isinstance(name, str) else None
    accepted = ", ".join(f"{kind.name} ({kind.api_versions[0]})" for kind in kinds)
    wrong = [_refusal("/kind", name, f'did you mean "{meant}"?' if meant else "the kind is not known here", accepted)]
    versions = [version for version, _ in JOB_KINDS if group_of(version) == group_of(api_version)]
    if versions and api_version not in versions:
        wrong.append(
            _refusal(
                "/apiVersion",
                api_version,
                "the group has another version",
                " or ".join(dict.fromkeys(versions)),
            )
        )
    if api_version is None:
        wrong.append(_refusal("/apiVersion", None, "", " or ".join(kind.api_versions[0] for kind in kinds)))
    return wrong


def _refusal(pointer: str, value: object, detail: str, accepted: str) -> FieldError:
    if value is None:
        return FieldError(pointer=pointer, code="Required", detail="the field is required", accepted=accepted)
    text = f'"{shorten(value)}"' if isinstance(value, str) else "not a string"
    return FieldError(pointer=pointer, code="UnknownKind", detail=f"{text}: {detail}", accepted=accepted)
