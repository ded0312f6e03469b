"""Where a pod may run: the cases were compared with a Kubernetes 1.36 API server's own answers."""

from typing import Any

import pytest

from tests.domain.pod_template.test_pod_template import errors_of, pod


def node_expression(**fields: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"} | fields]}]}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def node_field(**fields: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In"} | fields]}]}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def preferred_node(expression: dict[str, Any], weight: int = 1) -> dict[str, Any]:
    term = {"weight": weight, "preference": {"matchExpressions": [expression]}}
    return pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})


def pod_term(kind: str = "podAffinity", **fields: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {}} | fields
    return pod(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def spread(**fields: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"} | fields
    return pod(topologySpreadConstraints=[constraint])


ACCEPTED = [
    spread(), spread(minDomains=1, whenUnsatisfiable="DoNotSchedule"), spread(topologyKey="a b"),
    node_expression(operator="In", values=["x"]), node_expression(operator="Gt", values=["3"]),
    pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [None]}}}),
    node_expression(operator="In", values=[None]),
    node_field(values=["node-1"]), node_expression(operator="DoesNotExist"),
    preferred_node({"key": "a", "operator": "In", "values": ["c d"]}, weight=100),
    pod_term(namespaces=["a"], matchLabelKeys=["b"], labelSelector={"matchLabels": {"c/d": ""}}),
    pod_term("podAntiAffinity", namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
]  # fmt: skip


@pytest.mark.parametrize("template", ACCEPTED)
def test_what_kubernetes_accepts_passes(template: dict[str, Any]) -> None:
    assert errors_of(template) == []


NODE_TERM = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"
PREFERRED_NODE = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0"
POD_TERM = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0"
REFUSED = [
    (node_expression(operator="In"), f"{NODE_TERM}/matchExpressions/0/values", "Required"),
    (node_expression(operator="NotIn", values=[]), f"{NODE_TERM}/matchExpressions/0/values", "Required"),
    (node_expression(operator="Exists", values=["x"]), f"{NODE_TERM}/matchExpressions/0/values", "Invalid"),
    (node_expression(operator="DoesNotExist", values=["x"]), f"{NODE_TERM}/matchExpressions/0/values", "Invalid"),
    (node_expression(operator="Gt"), f"{NODE_TERM}/matchExpressions/0/values", "Invalid"),
    (node_expression(operator="Lt", values=["1", "2"]), f"{NODE_TERM}/matchExpressions/0/values", "Invalid"),
    (node_expression(operator="Near", values=["x"]), f"{NODE_TERM}/matchExpressions/0/operator", "NotSupported"),
    (node_expression(operator="", values=["x"]), f"{NODE_TERM}/matchExpressions/0/operator", "NotSupported"),
    (node_expression(operator="In", values=["x", "c d"]), f"{NODE_TERM}/matchExpressions/0/values/1", "Invalid"),
    (node_expression(operator="In", values=["x"], key="c d"), f"{NODE_TERM}/matchExpressions/0/key", "Invalid"),
    (node_expression(operator="In", values=["x"], key=""), f"{NODE_TERM}/matchExpressions/0/key", "Invalid"),
    (node_field(values=["a", "b"]), f"{NODE_TERM}/matchFields/0/values", "Required"),
    (node_field(), f"{NODE_TERM}/matchFields/0/values", "Required"),
    (node_field(values=["A_b"]), f"{NODE_TERM}/matchFields/0/values/0", "Invalid"),
    (node_field(values=["a"], operator="Gt"), f"{NODE_TERM}/matchFields/0/operator", "NotSupported"),
    (node_field(values=["a"], key="metadata.uid"), f"{NODE_TERM}/matchFields/0/key", "NotSupported"),
    (preferred_node({"key": "a", "operator": "In"}),
     f"{PREFERRED_NODE}/preference/matchExpressions/0/values", "Required"),
    *((preferred_node({"key": "a", "operator": "Exists"}, weight=weight), f"{PREFERRED_NODE}/weight", "OutOfRange")
      for weight in (0, 101, -1)),
    (pod_term(topologyKey=""), f"{POD_TERM}/topologyKey", "Required"),
    (pod_term(topologyKey="a b"), f"{POD_TERM}/topologyKey", "Invalid"),
    (pod_term(namespaces=["A"]), f"{POD_TERM}/namespaces/0", "Invalid"),
    (pod_term(labelSelector={"matchLabels": {"a": "c d"}}), f"{POD_TERM}/labelSelector/matchLabels/a", "Invalid"),
    (pod_term(labelSelector={"matchLabels": {"a b": "c"}}), f"{POD_TERM}/labelSelector/matchLabels/a b", "Invalid"),
    (pod_term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
     f"{POD_TERM}/labelSelector/matchExpressions/0/operator", "NotSupported"),
    (pod_term(labelSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["c d"]}]}),
     f"{POD_TERM}/labelSelector/matchExpressions/0/values/0", "Invalid"),
    (pod_term(labelSelector=None, matchLabelKeys=["a"]), f"{POD_TERM}/matchLabelKeys", "Invalid"),
    (pod_term(matchLabelKeys=["a"], mismatchLabelKeys=["a"]), f"{POD_TERM}/matchLabelKeys/0", "Duplicate"),
    (spread(minDomains=1), "/spec/topologySpreadConstraints/0/minDomains", "Invalid"),
    (spread(labelSelector={"matchLabels": {"a": "c d"}}),
     "/spec/topologySpreadConstraints/0/labelSelector/matchLabels/a", "Invalid"),
    (spread(matchLabelKeys=["a"]), "/spec/topologySpreadConstraints/0/matchLabelKeys", "Invalid"),
    (pod_term(mismatchLabelKeys=["a b"]), f"{POD_TERM}/mismatchLabelKeys/0", "Invalid"),
    (pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}}),
     "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", "OutOfRange"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "pointer", "code"), REFUSED)
def test_what_kubernetes_refuses(template: dict[str, Any], pointer: str, code: str) -> None:
    (error,) = errors_of(template)
    assert (error.pointer, error.code) == (pointer, code)
    assert error.accepted
