"""The variables that the command, args and env values of a replica can contain.

    $(type)  $(rank)  $(replicas[type])  $(service.type[rank].host)  $(service.port[name])

Kubernetes uses the same syntax for references to environment variables. All other references, and the escape `$$`,
stay as they are, for the kubelet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.plan import Manifest

# `$$` is the first alternative, so that `$$(rank)` is the escape of Kubernetes and not a reference.
_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^()$]*)\))")
_REPLICAS: Final = re.compile(r"replicas\[([^\[\]]+)\]")
# A rank is an int32, which has at most ten digits.
_HOST: Final = re.compile(r"service\.([^\[\]]+)\[([0-9]{1,10})\]\.host")
_PORT: Final = re.compile(r"service\.port\[([^\[\]]+)\]")

_CONTAINER_LISTS: Final = ("initContainers", "containers")
_TEXT_LISTS: Final = ("command", "args")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The values of variables in a job. `ports` is None in a job without Services."""

    job: str
    replicas: Mapping[str, int]
    ports: Mapping[str, int] | None

    def problem(self, name: str) -> str | None:
        """Return what is wrong with a variable; None if it is valid or has none of the known forms."""
        if name.startswith("service.") and (_HOST.fullmatch(name) or _PORT.fullmatch(name)) and self.ports is None:
            return "this variable needs spec.service.ports, and the job has none"
        if found := _PORT.fullmatch(name):
            return None if found[1] in (self.ports or {}) else "no port of spec.service has this name"
        if found := _HOST.fullmatch(name):
            return self._problem_with_replica(found[1], int(found[2]))
        if (found := _REPLICAS.fullmatch(name)) and found[1] not in self.replicas:
            return "no replica spec has this type"
        return None

    @property
    def accepted(self) -> str:
        """The variables that the job offers, for an error message."""
        types = shorten(", ".join(self.replicas))
        if not self.ports:
            return f"$(type), $(rank), $(replicas[t]) with t of {types}; or $$(…) for a text as it is"
        return (
            f"$(type), $(rank), $(replicas[t]) and $(service.t[r].host) with t of {types}, "
            f"$(service.port[p]) with p of {shorten(', '.join(self.ports))}; or $$(…) for a text as it is"
        )

    def _problem_with_replica(self, task: str, rank: int) -> str | None:
        if task not in self.replicas:
            return "no replica spec has this type"
        if rank < self.replicas[task]:
            return None
        highest = self.replicas[task] - 1
        return f"the highest rank of this type is {highest}" if highest >= 0 else "this type has no replicas"

    def value(self, name: str, task: str, rank: int | None) -> str | None:
        """Return the value of a variable in a replica; None if it has no known form, or needs a rank that is None."""
        if name == "type":
            return task
        if name == "rank":
            return None if rank is None else str(rank)
        if found := _REPLICAS.fullmatch(name):
            return str(self.replicas[found[1]]) if found[1] in self.replicas else None
        if found := _HOST.fullmatch(name):
            # The names of pods have no leading zeros.
            return f"{self.job}-{found[1]}-{int(found[2])}"
        if (found := _PORT.fullmatch(name)) and self.ports:
            return str(self.ports[found[1]]) if found[1] in self.ports else None
        return None

    def substitute(self, text: str, task: str, rank: int | None) -> str:
        if "$(" not in text:
            return text

        def replacement(reference: re.Match[str]) -> str:
            # `$$` has no group. It stays as it is, for the kubelet.
            value = None if reference[1] is None else self.value(reference[1], task, rank)
            return reference[0] if value is None else value

        return _REFERENCE.sub(replacement, text)


def check_texts(
    texts: Iterable[tuple[tuple[str | int, ...], str]], scope: Scope, base: str, problems: Problems
) -> None:
    """Report every variable of a known form that has no value. Each text comes with its location below `base`."""
    for steps, text in texts:
        if "$(" not in text:
            continue
        # A variable that a text repeats is reported once.
        for name in dict.fromkeys(_REFERENCE.findall(text)):
            if wrong := scope.problem(name):
                detail = f"$({shorten(name)}): {wrong}"
                problems.add(pointer_to(base, *steps), "InvalidVariable", detail, scope.accepted)


def texts_of(pod_spec: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text of a pod spec that can contain variables, with its location.

    Values of a wrong type are skipped.
    """
    for group in _CONTAINER_LISTS:
        for index, container in enumerate(_list(_field(pod_spec, group))):
            for name in _TEXT_LISTS:
                for position, text in enumerate(_list(_field(container, name))):
                    if isinstance(text, str):
                        yield (group, index, name, position), text
            for position, variable in enumerate(_list(_field(container, "env"))):
                if isinstance(value := _field(variable, "value"), str):
                    yield (group, index, "env", position, "value"), value


def rank_dependent_bytes(pod_spec: Manifest) -> int:
    """Return the number of characters in texts that contain $(rank), which replicas cannot share."""
    return sum(len(text) for _, text in texts_of(pod_spec) if "$(rank)" in text)


def has_references(value: Manifest) -> bool:
    """Return whether a text of the value may contain a variable. Encoding a value is faster than reading its texts."""
    return b"$(" in msgspec.json.encode(value)


def with_variables(pod_spec: Manifest, scope: Scope, task: str, rank: int | None) -> Manifest:
    """Return the pod spec with the variables replaced; if `rank` is None, all except $(rank)."""
    lists = {
        group: [_container_with_variables(container, scope, task, rank) for container in pod_spec[group]]
        for group in _CONTAINER_LISTS
        if pod_spec.get(group)
    }
    return {**pod_spec, **lists}


def _container_with_variables(container: Manifest, scope: Scope, task: str, rank: int | None) -> Manifest:
    changed: Manifest = {}
    for name in _TEXT_LISTS:
        # Kubernetes reads a null in a list of texts as an empty text.
        if texts := container.get(name):
            changed[name] = [scope.substitute(text or "", task, rank) for text in texts]
    if env := container.get("env"):
        changed["env"] = [_variable(variable, scope, task, rank) for variable in env]
    return {**container, **changed}


def _variable(variable: Manifest, scope: Scope, task: str, rank: int | None) -> Manifest:
    value = variable.get("value")
    if not isinstance(value, str) or "$(" not in value:
        return variable
    return {**variable, "value": scope.substitute(value, task, rank)}


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
