from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.node.environment import ConfigError, Sources, build_environment, expand, field_value

POD: Mapping[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u-1",
        "labels": {"b": "2", "a": 'say "hi"\n'},
        "annotations": {"x/y": "z"},
    },
    "spec": {
        "nodeName": "n",
        "containers": [
            {"name": "main", "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "1Gi"}}},
            {"name": "other", "resources": {"limits": {"memory": "100Mi"}}},
        ],
    },
}
CONFIG_MAPS = {"cm": {"a": "one", "bad=name": "x"}}
SECRETS = {"s": {"pw": "secret"}}


def sources() -> Sources:
    return Sources(
        pod=POD,
        pod_ip="127.2.0.1",
        host_ip="127.0.0.1",
        node_allocatable={"cpu": "8", "memory": "16Gi"},
        config_map=CONFIG_MAPS.get,
        secret=SECRETS.get,
    )


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "one"),
        ("x$(A)y$(B)z", "xoneytwoz"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$(NOPE)", "$(NOPE)"),
        ("$(A", "$(A"),
        ("$A ${A} $", "$A ${A} $"),
        ("$()", "$()"),
        ("$((A))", "$((A))"),
        ("", ""),
    ],
)
def test_expansion_follows_the_kubernetes_rules(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one", "B": "two"}) == expanded


@given(st.text())
def test_doubling_every_dollar_keeps_any_text_as_it_is(text: str) -> None:
    assert expand(text.replace("$", "$$"), {"A": "one"}) == text


def env(*entries: Mapping[str, Any], **container: Any) -> dict[str, str]:
    return build_environment({"name": "main", **POD["spec"]["containers"][0], "env": entries, **container}, sources())


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "p"),
        ({"fieldRef": {"fieldPath": "metadata.labels['b']"}}, "2"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['x/y']"}}, "z"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.2.0.1"),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "n"),
        ({"configMapKeyRef": {"name": "cm", "key": "a"}}, "one"),
        ({"secretKeyRef": {"name": "s", "key": "pw"}}, "secret"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}, "1500"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}}, "16"),
        ({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "1024"),
        ({"resourceFieldRef": {"resource": "limits.memory", "containerName": "other"}}, "104857600"),
    ],
)
def test_values_come_from_their_sources(source: Mapping[str, Any], value: str) -> None:
    assert env({"name": "X", "valueFrom": source}) == {"X": value}


def test_later_entries_see_earlier_ones_and_override_env_from() -> None:
    result = env(
        {"name": "a", "value": "own"},
        {"name": "B", "value": "$(a)-$(C)"},
        {"name": "C", "value": "late"},
        envFrom=[{"configMapRef": {"name": "cm"}}, {"prefix": "S_", "secretRef": {"name": "s"}}],
    )
    assert result == {"a": "own", "S_pw": "secret", "B": "own-$(C)", "C": "late"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "a"}}, 'configmap "no" not found'),
        ({"configMapKeyRef": {"name": "cm", "key": "no"}}, "couldn't find key no in ConfigMap ns/cm"),
        ({"secretKeyRef": {"name": "s", "key": "no"}}, "couldn't find key no in Secret ns/s"),
        ({"fieldRef": {"fieldPath": "status.phase"}}, "unsupported fieldPath: status.phase"),
    ],
)
def test_missing_sources_are_configuration_errors_in_the_kubelets_words(
    source: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", "[(]")):
        env({"name": "X", "valueFrom": source})


@pytest.mark.parametrize("kind", ["configMapKeyRef", "secretKeyRef"])
@pytest.mark.parametrize("name", ["no", "cm", "s"])
def test_optional_sources_may_be_missing(kind: str, name: str) -> None:
    assert env({"name": "X", "valueFrom": {kind: {"name": name, "key": "zzz", "optional": True}}}) == {}


def test_all_labels_are_quoted_lines() -> None:
    assert field_value("metadata.labels", sources()) == 'a="say \\"hi\\"\\n"\nb="2"'
