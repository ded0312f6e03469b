"""The files of the Helm chart agree with each other, with deploy/ and with jobgate. These tests need no helm."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
import yaml

from app.settings import ENV_PREFIX, Settings
from app.settings.oidc import SignInSettings
from tests.deploy.chart import CHART, TEMPLATES
from tests.deploy.rights import DEPLOY, DRY_RUN, LOGS, NAMESPACED, QUEUES, RBAC, SAMPLE_SETS, documents

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES_TEXT = (CHART / "values.yaml").read_text()
VALUES: dict[str, Any] = yaml.safe_load(VALUES_TEXT)
TEMPLATE_TEXT = "".join(path.read_text() for path in sorted(TEMPLATES.iterdir()))
# Templates for several pods read these as the values of `part`.
PARTS = ("api", "controller", "wholeLogs", "migration")
READ = re.compile(r"\.(Values|part|autoscaling|podDisruptionBudget)((?:\.\w+)+)")


def errors(values: Mapping[str, Any]) -> list[str]:
    return [error.message for error in jsonschema_rs.validator_for(SCHEMA).iter_errors(values)]


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Values with changes, as helm merges them."""
    return dict(values) | {
        key: merged(values[key], change) if isinstance(change, dict) and key in values else change
        for key, change in changes.items()
    }


def leaves(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The paths of all values that the schema describes one by one."""
    for name, part in schema["properties"].items():
        resolved = SCHEMA["definitions"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        if "properties" in resolved and name != "resources":
            yield from leaves(resolved, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


LEAVES = sorted(set(leaves(SCHEMA)) - {"global"})  # helm itself adds `global` to the values of a chart


def test_the_default_values_fit_the_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert errors(VALUES) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": 3},
        {"api": {"replcas": 3}},
        {"api": {"replicas": "3"}},
        {"api": {"workers": 65}},
        {"settings": {"JOBGATE_MAX_OPEN": 1000}},
        {"settings": {"MAX_OPEN": "1000"}},
        {"settings": {"JOBGATE_DRAIN_SECONDS": "9"}},
        {"database": {"url": "mysql://db.example/jobgate"}},
        {"namespaces": ["Team_A"]},
        {"ingress": {"enabled": True}},
        {"oidc": {"issuer": "https://id.example", "clientId": "jobgate"}},
        {"oidc": {"issuer": "https://id.example", "grants": ["*=viewer:*"]}},
        {"oidc": {"issuer": "http://id.example", "clientId": "jobgate", "grants": ["*=viewer:*"]}},
        {"oidc": {"grants": ["a=viewer:*;b=admin:*"]}},
        {"oidc": {"grants": ["a=owner:*"]}},
        {"settings": {"JOBGATE_OIDC_ISSUER": "https://id.example"}},
        {"controller": {"podDisruptionBudget": {"maxUnavailable": "half"}}},
    ],
    ids=str,
)
def test_the_schema_refuses_wrong_values(changes: dict[str, Any]) -> None:
    assert errors(merged(VALUES, changes)) != []


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"JOBGATE_MAX_OPEN": "1000"}},
        {"namespaces": ["team-a"], "global": {"any": 1}},
        {"oidc": {"issuer": "https://id.example", "clientId": "jobgate", "grants": ["cn=a,dc=b=viewer:*"]}},
        {"ingress": {"enabled": True, "hosts": ["jobgate.example"]}},
        {"controller": {"podDisruptionBudget": {"maxUnavailable": "50%"}}},
    ],
    ids=str,
)
def test_the_schema_accepts_other_values(changes: dict[str, Any]) -> None:
    assert errors(merged(VALUES, changes)) == []


def commented() -> Iterator[tuple[str, bool]]:
    """The path of each key of values.yaml, and whether the line above it is a comment."""
    path: list[tuple[int, str]] = []
    above = ""
    for line in VALUES_TEXT.splitlines():
        if found := re.match(r"( *)([A-Za-z]\w*):", line):
            indent = len(found[1])
            path = [(depth, name) for depth, name in path if depth < indent] + [(indent, found[2])]
            yield ".".join(name for _, name in path), above.lstrip().startswith("#")
        above = line


def test_the_schema_and_the_values_have_the_same_keys_and_each_value_has_a_comment() -> None:
    comments = dict(commented())
    assert [leaf for leaf in LEAVES if not comments.get(leaf)] == []
    known = {".".join(leaf.split(".")[:length]) for leaf in LEAVES for length in range(1, 5)}
    free = tuple(f"{leaf}." for leaf in LEAVES)  # such as `api.resources.requests`
    assert [key for key in comments if key not in known and not key.startswith(free)] == []


def read_by_templates() -> set[str]:
    found: set[str] = set()
    for owner, path in READ.findall(TEMPLATE_TEXT):
        name = path.removeprefix(".")
        if owner == "Values":
            found.add(name)
        else:
            inner = "" if owner == "part" else f"{owner}."
            found |= {f"{part}.{inner}{name}" for part in PARTS}
    found |= {f"api.autoscaling.{name}" for name in re.findall(r"{{ \.(\w+) }}", TEMPLATE_TEXT)}
    return found


def test_templates_read_every_value_and_no_other() -> None:
    read = read_by_templates()
    assert [leaf for leaf in LEAVES if leaf not in read and leaf != "api.autoscaling.enabled"] == []
    named = {path.removeprefix(".") for owner, path in READ.findall(TEMPLATE_TEXT) if owner == "Values"}
    known = {".".join(leaf.split(".")[:length]) for leaf in LEAVES for length in range(1, 5)}
    assert sorted(named - known) == []


def test_settings_exist_and_no_value_can_contradict_another() -> None:
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    set_by_templates = set(re.findall(rf"name: ({ENV_PREFIX}[A-Z_]+)", TEMPLATE_TEXT))
    refused = set(SCHEMA["properties"]["settings"]["propertyNames"]["not"]["enum"])
    assert set_by_templates <= refused <= known
    options = {f"{ENV_PREFIX}{name.upper()}" for name in re.findall(r"--([a-z]+),", TEMPLATE_TEXT)}
    assert {f"{ENV_PREFIX}ROLE", f"{ENV_PREFIX}PORT"} <= options <= refused
    assert set(re.findall(rf"\b{ENV_PREFIX}[A-Z_]*[A-Z]\b", VALUES_TEXT)) <= known


def test_the_example_of_a_sign_in_is_a_patch_of_the_api_with_valid_settings() -> None:
    (patch,) = documents(DEPLOY / "oidc.example.yaml")
    api = next(found for found in documents(DEPLOY / "api.yaml") if found["kind"] == "Deployment")
    assert {key: patch["metadata"][key] for key in ("name", "namespace")} == {
        key: api["metadata"][key] for key in ("name", "namespace")
    }
    (ours,), (theirs,) = (each["spec"]["template"]["spec"]["containers"] for each in (patch, api))
    assert ours["name"] == theirs["name"]
    given = {each["name"]: each["value"] for each in ours["env"]}
    (mount,) = ours["volumeMounts"]
    assert given.pop("SSL_CERT_FILE") == f"{mount['mountPath']}/ca.crt"
    oidc = SignInSettings(**{name.removeprefix(ENV_PREFIX).lower(): value for name, value in given.items()}).oidc()
    assert oidc is not None
    assert set(oidc.grants) == {"vision-team", "platform", "*"}


def test_versions_are_those_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    assert (chart["version"], chart["appVersion"]) == (project["version"], project["version"])


def test_rules_are_those_of_deploy() -> None:
    roles = [
        role
        for path in (RBAC, SAMPLE_SETS, QUEUES, DRY_RUN, LOGS, NAMESPACED)
        for role in documents(path)
        if role["kind"] in ("Role", "ClusterRole")
    ]
    of_deploy = {role["metadata"]["name"].removeprefix("jobgate-"): role["rules"] for role in roles}
    of_chart = {path.stem: yaml.safe_load(path.read_text()) for path in (CHART / "files" / "rbac").iterdir()}
    assert of_chart == of_deploy


def test_alerts_are_those_of_monitoring() -> None:
    source = DEPLOY / "monitoring" / "alerts.yaml"
    assert (CHART / "files" / "alerts.yaml").read_text() == source.read_text(), f"copy {source}"
