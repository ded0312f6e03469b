"""Rules on where a pod may run: tolerations, affinity, topology spread."""

from collections import Counter
from collections.abc import Collection, Iterator

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.pod_template.reading import Mapping, items, mapping, text, texts

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_NAME = "metadata.name"  # the only field by which nodes are selected


def check_placement(pod: Mapping, pointer: str, problems: Problems, own_labels: Collection[str]) -> None:
    """Check where a pod with these labels may run."""
    for toleration, here in items(pod, "tolerations", pointer):
        _check_toleration(toleration, here, problems)
    affinity = mapping(pod.get("affinity"))
    here = pointer_to(pointer, "affinity")
    _check_node_affinity(mapping(affinity.get("nodeAffinity")), pointer_to(here, "nodeAffinity"), problems)
    for kind in ("podAffinity", "podAntiAffinity"):
        for term, at in _pod_terms(mapping(affinity.get(kind)), pointer_to(here, kind)):
            _check_pod_term(term, at, problems)
            _check_merged(term, at, own_labels, problems)
    for constraint, at in items(pod, "topologySpreadConstraints", pointer):
        _check_merged(constraint, at, own_labels, problems)
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
        _check_node_term(term, here, problems, checks_values=True)
    for weighted, here in items(affinity, _PREFERRED, pointer):
        preference = mapping(weighted.get("preference"))
        # The API server accepts every value here, because a preference may be futile.
        _check_node_term(preference, pointer_to(here, "preference"), problems, checks_values=False)


def _check_node_term(term: Mapping, pointer: str, problems: Problems, *, checks_values: bool) -> None:
    _check_expressions(term, pointer, problems, checks_values=checks_values)
    for requirement, here in items(term, "matchFields", pointer):
        if text(requirement, "key") != _NODE_NAME:
            detail = f"nodes cannot be selected by the field {shorten(text(requirement, 'key'))}"
            problems.add(pointer_to(here, "key"), "NotSupported", detail, _NODE_NAME)
        if text(requirement, "operator") not in {"In", "NotIn"}:
            detail = "the name of a node is compared with In or NotIn only"
            problems.add(pointer_to(here, "operator"), "NotSupported", detail, "In or NotIn")
        values = list(texts(requirement, "values", here))
        if len(values) != 1:
            detail = "the name of a node is compared with one value"
            problems.add(pointer_to(here, "values"), "Required", detail, "the name of one node")
        for value, at in values:
            if wrong := names.dns_subdomain(value):
                problems.add(at, "Invalid", wrong, "the name of a node")


def _pod_terms(affinity: Mapping, pointer: str) -> Iterator[tuple[Mapping, str]]:
    yield from items(affinity, _REQUIRED, pointer)
    for weighted, here in items(affinity, _PREFERRED, pointer):
        yield mapping(weighted.get("podAffinityTerm")), pointer_to(here, "podAffinityTerm")


def _check_pod_term(term: Mapping, pointer: str, problems: Problems) -> None:
    _check_selectors(term, pointer, problems)
    key = text(term, "topologyKey")
    if key and (wrong := names.label_key(key)):
        problems.add(pointer_to(pointer, "topologyKey"), "Invalid", wrong, "the key of a label of nodes")
    for namespace, here in texts(term, "namespaces", pointer):
        if wrong := names.dns_label(namespace):
            problems.add(here, "Invalid", wrong, "the name of a namespace")


def _check_selectors(term: Mapping, pointer: str, problems: Problems) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        check_selector(mapping(term.get(name)), pointer_to(pointer, name), problems)
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        for key, here in texts(term, name, pointer):
            if wrong := names.label_key(key):
                problems.add(here, "Invalid", wrong, "the key of a label")
        if term.get(name) and term.get("labelSelector") is None:
            problems.add(pointer_to(pointer, name), "Invalid", f"{name} needs a labelSelector", "leave it out")
    excluded = {key for key, _ in texts(term, "mismatchLabelKeys", pointer)}
    for key, here in texts(term, "matchLabelKeys", pointer):
        if key in excluded:
            problems.add(here, "Duplicate", "the key is also one of mismatchLabelKeys", "one of both lists")


def _check_merged(term: Mapping, pointer: str, own: Collection[str], problems: Problems) -> None:
    """Check matchLabelKeys. The API server adds those that are labels of the pod to the selector, which has each once.

    `own` has the keys of the pod's labels.
    """
    selector = mapping(term.get("labelSelector"))
    selected = [text(expression, "key") for expression, _ in items(selector, "matchExpressions", "")]
    counts = Counter([*selected, *mapping(selector.get("matchLabels")), *own])
    for key, here in texts(term, "matchLabelKeys", pointer):
        if counts[key] > 1:
            problems.add(here, "Duplicate", "the labelSelector has the key as well", "one of both")


def check_selector(selector: Mapping, here: str, problems: Problems) -> None:
    _check_expressions(selector, here, problems, checks_values=True)
    for key, value in mapping(selector.get("matchLabels")).items():
        wrong = names.label_key(key) or (names.label_value(value) if isinstance(value, str) else None)
        if wrong:
            problems.add(pointer_to(here, "matchLabels", key), "Invalid", wrong, "the key and value of a label")


def _check_expressions(selector: Mapping, pointer: str, problems: Problems, *, checks_values: bool) -> None:
    for expression, here in items(selector, "matchExpressions", pointer):
        key = text(expression, "key")
        # The schema reports a key that is missing.
        if expression.get("key") is not None and (wrong := names.label_key(key)):
            problems.add(pointer_to(here, "key"), "Invalid", wrong, "the key of a label")
        _check_values(expression, here, problems, checks_values=checks_values)


def _check_values(expression: Mapping, here: str, problems: Problems, *, checks_values: bool) -> None:
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
    elif checks_values:
        for value, pointer in texts(expression, "values", here):
            if wrong := names.label_value(value):
                problems.add(pointer, "Invalid", wrong, "the value of a label")


def _check_spread(pod: Mapping, pointer: str, problems: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for constraint, here in items(pod, "topologySpreadConstraints", pointer):
        _check_selectors(constraint, here, problems)
        if constraint.get("minDomains") is not None and text(constraint, "whenUnsatisfiable") == "ScheduleAnyway":
            detail = "minDomains has no meaning with whenUnsatisfiable ScheduleAnyway"
            problems.add(pointer_to(here, "minDomains"), "Invalid", detail, "leave it out")
        pair = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))
        if pair in seen:
            detail = "another constraint has the same topologyKey and whenUnsatisfiable"
            problems.add(here, "Duplicate", detail, "each pair once")
        seen.add(pair)
