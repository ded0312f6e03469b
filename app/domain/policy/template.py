"""A pod template in the form that the checks of the policy read. Every pointer is relative to the template.

The policy checks each submission, so the parts that most checks read are computed once for each template. Pointers are
joined without escaping, since field names of the Kubernetes API do not need it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from app.domain.plan import Manifest
from app.domain.pod_template.reading import Mapping, mapping, text

SPEC: Final = "/spec"
ANNOTATIONS: Final = "/metadata/annotations"
LABELS: Final = "/metadata/labels"
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_CONTEXT: Final = "securityContext"


class TemplateObject(NamedTuple):
    """An object of the template and the pointer to it."""

    value: Mapping
    pointer: str

    def at(self, *steps: str | int) -> str:
        """Return the pointer to a field of the Kubernetes API, or to an item of a list."""
        return "/".join([self.pointer, *map(str, steps)])

    def child(self, name: str) -> "TemplateObject":
        """Return the object in this field; empty if the field is absent."""
        return TemplateObject(mapping(self.value.get(name)), f"{self.pointer}/{name}")

    def items(self, name: str) -> "Iterator[TemplateObject]":
        """Yield the objects of the list in this field."""
        values = self.value.get(name)
        for index, value in enumerate(values if isinstance(values, list) else ()):
            if isinstance(value, dict):
                yield TemplateObject(value, f"{self.pointer}/{name}/{index}")


class Finding(NamedTuple):
    """One field that violates a control: where it is, what is wrong, and what is accepted."""

    pointer: str
    detail: str
    accepted: str


Check: TypeAlias = Callable[["PodTemplate"], Iterator[Finding]]


class PodTemplate:
    """The parts of a pod template. `contexts` are all security contexts: that of the pod, then `container_contexts`.

    `has_own_users` says whether the pod has its own user namespace, in which root is not root of the node.
    """

    __slots__ = (
        "annotations", "container_contexts", "containers", "context", "contexts", "has_own_users", "labels", "spec",
        "volumes",
    )  # fmt: skip

    def __init__(self, template: Manifest, *, user_namespaces: bool) -> None:
        self.spec = TemplateObject(mapping(template.get("spec")), SPEC)
        metadata = mapping(template.get("metadata"))
        self.annotations = mapping(metadata.get("annotations"))
        self.labels = mapping(metadata.get("labels"))
        self.volumes = tuple(self.spec.items("volumes"))
        self.containers = tuple(place for field in _CONTAINER_LISTS for place in self.spec.items(field))
        self.context = self.spec.child(_CONTEXT)
        self.container_contexts = tuple(
            container.child(_CONTEXT) for container in self.containers if container.value.get(_CONTEXT)
        )
        self.has_own_users = user_namespaces and self.spec.value.get("hostUsers") is False
        self.contexts = (self.context, *self.container_contexts) if self.context.value else self.container_contexts

    @property
    def is_windows(self) -> bool:
        """Whether the pod declares the operating system Windows, to which controls for Linux do not apply."""
        return text(self.spec.child("os").value, "name") == "windows"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTemplate:
    """A pod template that a manifest declares. `locate` maps pointers into it to pointers into the posted document."""

    template: Manifest
    locate: Callable[[str], str]

    @classmethod
    def at(cls, template: Manifest, base: str) -> "DeclaredTemplate":
        """Return a template that the document contains unchanged at the pointer `base`."""
        return cls(template=template, locate=lambda pointer: base + pointer)
