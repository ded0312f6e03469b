"""Rules on where a pod may run: tolerations, affinity, topology spread."""

from app.domain.errors import Problems, pointer_to
from app.domain.kubernetes import names
from app.domain.pod_template.reading import Mapping, items, mapping, text

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_placement(pod: Mapping, pointer: str, problems: Problems) -> None:
    for toleration, here in items(pod, "tolerations", pointer):
        _check_toleration(toleration, here, problems)
    affinity = mapping(pod.get("affinity"))
    here = pointer_to(pointer, "affinity")
    _check_node_affinity(mapping(affinity.get("nodeAffinity")), pointer_to(here, "nodeAffinity"), problems)
    for kind in ("podAffinity", "podAntiAffinity"):
        _check_pod_affinity(mapping(affinity.get(kind)), pointer_to(here, kind), problems)
    _check_spread(pod, pointer, problems)


def _check_toleration(toleration: Mapping, here: str, problems: Problems) -> None:
    key, operator = text(toleration, "key"), text(toleration, "operator")
    if key and (wrong := names.label_key(key)):
        problems.add(pointer_to(here, "key"), "Invalid", wrong, "the key of a taint")
    if not key and operator != "Exists":
        problems.add(pointer_to(here, "operator"), "Invalid", "without a key the operator must be Exists", "Exists")
    if operator == "Exists" and text(toleration, "value"):
        problems.add(pointer_to(here, "value"), "Invalid", "with the operator Exists there is no value", "leave it out")
    elif operator in {"", "Equal"} and (wrong := names.label_value(text(toleration, "value"))):
        problems.add(pointer_to(here, "value"), "Invalid", wrong, "the value of a taint")
    if toleration.get("tolerationSeconds") is not None and text(toleration, "effect") != "NoExecute":
        problems.add(pointer_to(here, "effect"), "Invalid", "tolerationSeconds needs the effect NoExecute", "NoExecute")


def _check_node_affinity(affinity: Mapping, pointer: str, problems: Problems) -> None:
    required = mapping(affinity.get(_REQUIRED))
    for term, here in items(required, "nodeSelectorTerms", pointer_to(pointer, _REQUIRED)):
        _check_expressions(term, here, problems)
    for weighted, here in items(affinity, _PREFERRED, pointer):
        _check_expressions(mapping(weighted.get("preference")), pointer_to(here, "preference"), problems)


def _check_pod_affinity(affinity: Mapping, pointer: str, problems: Problems) -> None:
    for term, here in items(affinity, _REQUIRED, pointer):
        _check_selectors(term, here, problems)
    for weighted, here in items(affinity, _PREFERRED, pointer):
        _check_selectors(mapping(weighted.get("podAffinityTerm")), pointer_to(here, "podAffinityTerm"), problems)


def _check_selectors(term: Mapping, pointer: str, problems: Problems) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        _check_expressions(mapping(term.get(name)), pointer_to(pointer, name), problems)


def _check_expressions(selector: Mapping, pointer: str, problems: Problems) -> None:
    for expression, here in items(selector, "matchExpressions", pointer):
        if wrong := names.label_key(text(expression, "key")):
            problems.add(pointer_to(here, "key"), "Invalid", wrong, "the key of a label")
        values = expression.get("values")
        count = len(values) if isinstance(values, list) else 0
        operator = text(expression, "operator")
        at = pointer_to(here, "values")
        if operator in {"In", "NotIn"} and not count:
            problems.add(at, "Required", f"the operator {operator} needs values", "at least one value")
        elif operator in {"Exists", "DoesNotExist"} and count:
            problems.add(at, "Invalid", f"the operator {operator} takes no values", "leave it out")
        elif operator in {"Gt", "Lt"} and count != 1:
            problems.add(at, "Invalid", f"the operator {operator} compares with one value", "one integer as a string")


def _check_spread(pod: Mapping, pointer: str, problems: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for constraint, here in items(pod, "topologySpreadConstraints", pointer):
        _check_selectors(constraint, here, problems)
        pair = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))
        if pair in seen:
            detail = "another constraint has the same topologyKey and whenUnsatisfiable"
            problems.add(here, "Duplicate", detail, "each pair once")
        seen.add(pair)
