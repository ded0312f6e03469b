"""Completes the metadata of a posted manifest: a name generated from generateName, and the namespace of the path."""

from collections.abc import Callable
from typing import Final, TypeAlias

from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.kubernetes.names import DNS_LABEL_MAX
from app.domain.plan import Manifest

# As in Kubernetes.
SUFFIX_LENGTH: Final = 5
# The alphabet of Kubernetes for generated names: no vowels, and no digits that look like vowels.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

NAME: Final = "/metadata/name"

Suffix: TypeAlias = Callable[[], str]


def generate_name(base: str, suffix: Suffix, name_max: int = DNS_LABEL_MAX) -> str:
    """Return the base with a new suffix, within `name_max` characters."""
    # As in Kubernetes, a long base is cut so that the suffix always fits.
    return base[: name_max - SUFFIX_LENGTH] + suffix()


def add_name(document: Manifest, suffix: Suffix, name_max: int = DNS_LABEL_MAX) -> tuple[Manifest, bool]:
    """Return the document with a name, and whether the name was generated from its generateName."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") is not None:
        return document, False
    base = metadata.get("generateName")
    if not isinstance(base, str) or not base:
        return document, False
    return {**document, "metadata": {**metadata, "name": generate_name(base, suffix, name_max)}}, True


def name_pointer(*, generated: bool) -> str:
    """Return the pointer to the field with which the document determines its name."""
    return "/metadata/generateName" if generated else NAME


def require_namespace(document: Manifest, namespace: str) -> Manifest:
    """Return the document if it names no namespace or that of the path.

    Raises:
        InvalidManifest: the document names another namespace.
    """
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    given = metadata.get("namespace")
    if isinstance(given, str) and given != namespace:
        error = FieldError(
            pointer="/metadata/namespace",
            code="NamespaceMismatch",
            detail=f"the manifest is for the namespace {shorten(given)}, and the request for {namespace}",
            accepted=f"{namespace}, or none",
        )
        raise InvalidManifest("the manifest belongs to another namespace", errors=[error])
    return document
