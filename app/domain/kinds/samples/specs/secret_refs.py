"""References to Secrets, with upstream's messages about missing fields."""

from typing import Final

from app.domain.cache.limits import CacheLimits
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kinds.spec.model import SpecModel
from app.domain.kubernetes import names

_ACCEPTED: Final = "a Secret's name"


class SecretRef(SpecModel):
    """A reference to a Secret."""

    name: str = ""
    """Name of the Secret."""
    namespace: str = ""
    """The default is the namespace of the manifest."""


def check_secret_ref(
    ref: SecretRef | None, pointer: str, limits: CacheLimits, problems: Problems, *, is_whole: bool = True
) -> None:
    """Check a reference. One that need not be whole takes missing fields from another reference.

    jobgate reads Secrets with its own permissions, so those of another namespace need the installation's consent.
    """
    if ref is None:
        problems.add(pointer, "SecretRefEmpty", "spec.secretRef should not be empty", _ACCEPTED)
        return
    at = pointer_to(pointer, "name")
    if not ref.name and is_whole:
        problems.add(at, "SecretRefNameEmpty", "spec.secretRef.name is not set", _ACCEPTED)
    elif ref.name and (wrong := names.dns_subdomain(ref.name)):
        problems.add(at, "InvalidName", wrong, _ACCEPTED)
    if ref.namespace and ref.namespace != limits.namespace and ref.namespace not in limits.secret_namespaces:
        detail = f"Secrets of the namespace {shorten(ref.namespace)} may not be used here"
        accepted = ", ".join([limits.namespace, *sorted(limits.secret_namespaces)])
        problems.add(pointer_to(pointer, "namespace"), "SecretNamespace", detail, accepted)


def resolve_ref(ref: SecretRef, fallback: SecretRef | None, namespace: str) -> tuple[str, str]:
    """Return (namespace, name) of the Secret, with missing fields from the fallback, then from the manifest."""
    other = fallback or SecretRef()
    return ref.namespace or other.namespace or namespace, ref.name or other.name
