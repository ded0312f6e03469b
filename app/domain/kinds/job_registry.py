"""The dialects of all job kinds. A new kind adds one entry to `_ALL`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.kinds.di_job import DIJobDialect
from app.domain.kinds.generic_job import GenericJobDialect
from app.domain.kinds.job_kind import Dialect
from app.domain.kinds.mx_job import MxJobDialect
from app.domain.kinds.spec.model import nearest
from app.domain.kinds.training_job import TrainingJobDialect

_ALL: Final[tuple[Dialect[Any], ...]] = (GenericJobDialect(), MxJobDialect(), DIJobDialect(), TrainingJobDialect())

DIALECTS: Final[Mapping[tuple[str, str], Dialect[Any]]] = MappingProxyType(
    {(version, dialect.kind): dialect for dialect in _ALL for version in dialect.api_versions}
)


def find(api_version: object, kind: object) -> Dialect[Any]:
    """Return the dialect of a manifest with this apiVersion and kind.

    Raises:
        InvalidManifest: no dialect has them; the error names the wrong field and the known kinds and versions.
    """
    if isinstance(api_version, str) and isinstance(kind, str) and (api_version, kind) in DIALECTS:
        return DIALECTS[api_version, kind]
    raise InvalidManifest("the kind of the manifest is not known here", errors=_refusals(api_version, kind))


def _refusals(api_version: object, kind: object) -> list[FieldError]:
    for dialect in _ALL:
        # The kind is known, so only the version is wrong.
        if dialect.kind == kind:
            groups = {_group(version) for version in dialect.api_versions}
            other = "version" if _group(api_version) in groups else "group"
            detail = f"{kind} belongs to another {other}"
            return [_refusal("/apiVersion", api_version, detail, " or ".join(dialect.api_versions))]
    known = [dialect.kind for dialect in _ALL]
    meant = nearest(kind, known) if isinstance(kind, str) else None
    accepted = ", ".join(f"{dialect.kind} ({dialect.api_versions[0]})" for dialect in _ALL)
    wrong = [_refusal("/kind", kind, f'did you mean "{meant}"?' if meant else "the kind is not known here", accepted)]
    versions = [version for version, _ in DIALECTS if _group(version) == _group(api_version)]
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
        wrong.append(_refusal("/apiVersion", None, "", " or ".join(dialect.api_versions[0] for dialect in _ALL)))
    return wrong


def _group(api_version: object) -> str | None:
    return api_version.partition("/")[0] if isinstance(api_version, str) else None


def _refusal(pointer: str, value: object, detail: str, accepted: str) -> FieldError:
    if value is None:
        return FieldError(pointer=pointer, code="Required", detail="the field is required", accepted=accepted)
    text = f'"{shorten(value)}"' if isinstance(value, str) else "not a string"
    return FieldError(pointer=pointer, code="UnknownKind", detail=f"{text}: {detail}", accepted=accepted)
