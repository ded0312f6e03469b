"""The objects that helm renders are those of deploy/, and fit together."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import ENV_PREFIX
from app.settings.oidc import SignInSettings
from tests.deploy.chart import (
    CHART,
    EVERYTHING,
    KUBERNETES,
    NAMESPACE,
    grants,
    notes,
    of_kind,
    rendered,
    run_helm,
    template,
)
from tests.deploy.rights import DEPLOY, DRY_RUN, LOGS, NAMESPACED, QUEUES, RBAC, SAMPLE_SETS, documents

Object = dict[str, Any]


def test_the_chart_has_no_findings_of_helm() -> None:
    ran = run_helm("lint", str(CHART), "--strict", "--kube-version", KUBERNETES, values=EVERYTHING)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_everything_is_rendered_and_nothing_that_is_not_wanted() -> None:
    optional = {"HorizontalPodAutoscaler", "Ingress", "ServiceMonitor", "PrometheusRule", "Secret"}
    always = {
        *("Deployment", "Service", "ServiceAccount", "Job", "CronJob", "PodDisruptionBudget", "NetworkPolicy"),
        *("ClusterRole", "ClusterRoleBinding"),
    }
    assert {found["kind"] for found in rendered({})} == always
    assert {found["kind"] for found in rendered(EVERYTHING)} == always | optional
    off = {
        "migration": {"enabled": False},
        "rbac": {"create": False},
        "serviceAccounts": {"create": False},
        "networkPolicy": {"enabled": False},
        "api": {"podDisruptionBudget": {"enabled": False}},
        "controller": {"podDisruptionBudget": {"enabled": False}},
    }
    assert {found["kind"] for found in rendered(off)} == {"Deployment", "Service", "CronJob"}


@pytest.mark.parametrize(("namespaces", "served"), [([], "default"), (["team-a", "team-b"], "team-a")])
def test_the_notes_name_a_namespace_that_is_served(namespaces: list[str], served: str, tmp_path: Path) -> None:
    assert f"--role submitter --namespace {served}\n" in notes({"namespaces": namespaces}, tmp_path)


def described(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    """Roles and bindings by kind, namespace and name, without their labels."""
    return {
        (found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"]): {
            key: value for key, value in found.items() if key not in ("apiVersion", "metadata")
        }
        for found in grants(objects)
    }


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({}, [RBAC]),
        ({"clusterDryRun": {"enabled": True}}, [RBAC, DRY_RUN]),
        ({"sampleSets": {"enabled": True}}, [RBAC, SAMPLE_SETS]),
        ({"queues": {"enabled": True}}, [RBAC, QUEUES]),
        ({"wholeLogs": {"store": "s3://bucket"}}, [RBAC, LOGS]),
    ],
    ids=["core", "dry run", "sample sets", "queues", "whole logs"],
)
def test_rights_are_those_of_deploy(values: Mapping[str, Any], paths: list[Any]) -> None:
    found = rendered({**values, "rbac": {"user": "gateway"}})
    assert described(found) == described([document for path in paths for document in documents(path)])


def test_rights_in_some_namespaces_are_those_of_the_example() -> None:
    """The example replaces five ClusterRoleBindings. It names no user, and the installation has a Role of its own."""
    further = {"sampleSets": {"enabled": True}, "queues": {"enabled": True}, "wholeLogs": {"store": "s3://bucket"}}
    values = {"namespaces": ["team-a"], **further, "rbac": {"user": ""}}
    found = {
        (kind, namespace or (NAMESPACE if kind in ("Role", "RoleBinding") else ""), name): found
        for (kind, namespace, name), found in described(rendered(values)).items()
    }
    example = described(documents(NAMESPACED))
    kept = {key: found[key] for key in found if key not in example}
    assert {key: found.get(key) for key in example} == example
    assert {name for kind, _, name in kept if kind == "ClusterRoleBinding"} == {
        "jobgate-cluster",
        "jobgate-flavors",
        "jobgate-sample-volumes",
    }
    assert not [key for key in kept if key[0] in ("Role", "RoleBinding")]


def test_each_namespace_has_its_bindings_and_foreign_secrets_have_theirs() -> None:
    values = {
        "namespaces": ["team-a", "team-b"],
        "clusterDryRun": {"enabled": True},
        "sampleSets": {"enabled": True, "secretNamespaces": ["vault"]},
    }
    bound: dict[str, set[str]] = {}
    for kind, namespace, name in described(rendered(values)):
        if kind == "RoleBinding" and namespace:
            bound.setdefault(namespace, set()).add(name.removeprefix("jobgate-"))
    every = {"jobs", "logs", "dry-run", "sample-sets"}
    assert bound == {"team-a": every, "team-b": every, "vault": {"sample-sets"}}
    environment = variables(of_kind("Deployment", rendered(values))["jobgate-controller"])
    assert environment["JOBGATE_NAMESPACES"] == "team-a,team-b"
    assert environment["JOBGATE_SECRET_NAMESPACES"] == "vault"


def container(workload: Object) -> Object:
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def variables(workload: Object) -> dict[str, Any]:
    found = [(each["name"], each.get("value", each.get("valueFrom"))) for each in container(workload)["env"]]
    assert len(found) == len(dict(found)), "a variable is set twice"
    return dict(found)


@pytest.mark.parametrize("component", ["api", "controller", "logs"])
def test_pods_run_as_in_deploy(component: str) -> None:
    ours = of_kind("Deployment", rendered({"wholeLogs": {"store": "s3://bucket"}}))[f"jobgate-{component}"]
    theirs = of_kind("Deployment", documents(DEPLOY / f"{component}.yaml"))[f"jobgate-{component}"]
    ours_pod, theirs_pod = ours["spec"]["template"]["spec"], theirs["spec"]["template"]["spec"]
    of_pod = ("serviceAccountName", "securityContext", "terminationGracePeriodSeconds")
    assert {key: ours_pod[key] for key in of_pod} == {key: theirs_pod[key] for key in of_pod}
    same = ("name", "command", "ports", "livenessProbe", "readinessProbe", "resources", "securityContext")
    assert {key: container(ours)[key] for key in same} == {key: container(theirs)[key] for key in same}
    assert container(ours).get("lifecycle") == container(theirs).get("lifecycle")
    ignored = {
        *("JOBGATE_RUNTIME_IMAGE", "JOBGATE_SYSTEM_NAMESPACE"),
        "JOBGATE_LOG_STORE",  # deploy/ has none, and an example in logs.yaml
        *("JOBGATE_SHUTDOWN_TIMEOUT", "JOBGATE_DRAIN_SECONDS"),  # tests/deploy/test_shutdown.py compares their effect
    }
    assert {key: value for key, value in variables(ours).items() if key not in ignored} == {
        key: value for key, value in variables(theirs).items() if key not in ignored
    }


def test_the_migration_runs_before_everything_else_and_as_in_deploy() -> None:
    job = of_kind("Job", rendered({}))["jobgate-migrate"]
    (theirs,) = (container(found["spec"]["jobTemplate"]) for found in documents(DEPLOY / "migrate.yaml"))
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    same = ("name", "command", "env", "resources", "securityContext")
    assert {key: container(job)[key] for key in same} == {key: theirs[key] for key in same}
    pod = job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod, "the service accounts of the chart do not exist yet"


def test_the_uninstall_runs_as_in_deploy_and_with_the_rights_and_variables_of_the_controller() -> None:
    objects = rendered({"namespaces": ["team-a"], "settings": {"JOBGATE_LEASE_SECONDS": "20"}})
    ours = of_kind("CronJob", objects)["jobgate-uninstall"]["spec"]
    (theirs,) = (found["spec"] for found in documents(DEPLOY / "uninstall.yaml"))
    controller = of_kind("Deployment", objects)["jobgate-controller"]
    of_controller = {"JOBGATE_DRAIN_SECONDS"}
    job = ours["jobTemplate"]
    assert variables(job) == {key: value for key, value in variables(controller).items() if key not in of_controller}
    assert {key: ours[key] for key in ("suspend", "schedule")} == {key: theirs[key] for key in ("suspend", "schedule")}
    assert ours["suspend"] is True
    same = ("name", "command", "resources", "securityContext")
    assert {key: container(job)[key] for key in same} == {key: container(theirs["jobTemplate"])[key] for key in same}
    pods = [found["spec"]["template"]["spec"] for found in (job, theirs["jobTemplate"], controller)]
    assert len({pod["serviceAccountName"] for pod in pods}) == 1


def test_a_url_of_the_database_is_in_secrets_that_exist_when_they_are_needed() -> None:
    found = rendered(EVERYTHING)
    url = EVERYTHING["database"]["url"]
    assert url not in yaml.safe_dump([each for each in found if each["kind"] != "Secret"])
    secrets = of_kind("Secret", found)
    assert {each["stringData"]["url"] for each in secrets.values()} == {url}
    job = of_kind("Job", found)["jobgate-migrate"]
    assert variables(job)["JOBGATE_DATABASE_URL"]["secretKeyRef"] == {"name": "jobgate-migrate", "key": "url"}
    hook, before = (each["metadata"]["annotations"] for each in (job, secrets["jobgate-migrate"]))
    assert hook["helm.sh/hook"] == before["helm.sh/hook"]
    assert int(before["helm.sh/hook-weight"]) < int(hook["helm.sh/hook-weight"])
    deployments = of_kind("Deployment", found)
    assert deployments
    for deployment in deployments.values():
        assert variables(deployment)["JOBGATE_DATABASE_URL"]["secretKeyRef"]["name"] == "jobgate-database"
    assert "annotations" not in secrets["jobgate-database"]["metadata"], "it belongs to the release"


def test_nothing_that_is_derived_from_the_url_of_the_database_is_in_the_pods() -> None:
    everything, least = (of_kind("Deployment", rendered(values)) for values in (EVERYTHING, {}))
    assert everything
    assert least
    for deployment in everything.values():
        # The number of the release is no secret, and changes with every upgrade.
        annotations = deployment["spec"]["template"]["metadata"]["annotations"]
        assert annotations == {"jobgate.dev/release-revision": "1"}
    for deployment in least.values():
        assert "annotations" not in deployment["spec"]["template"]["metadata"]


def test_the_sign_in_is_that_of_the_example() -> None:
    (patch,) = documents(DEPLOY / "oidc.example.yaml")
    example = patch["spec"]["template"]["spec"]
    found = of_kind("Deployment", rendered(EVERYTHING))
    api, controller = found["jobgate-api"], found["jobgate-controller"]
    wanted = variables(patch)
    assert {name: value for name, value in variables(api).items() if name in wanted} == wanted
    assert container(api)["volumeMounts"] == container(patch)["volumeMounts"]
    assert api["spec"]["template"]["spec"]["volumes"] == example["volumes"]
    assert set(variables(controller)) & set(wanted) == set()
    assert "volumes" not in controller["spec"]["template"]["spec"]


def test_every_setting_of_the_sign_in_has_a_value() -> None:
    oidc = {
        **EVERYTHING["oidc"],
        "audience": "api",
        "scopes": ["openid", "groups"],
        "nameClaims": ["upn", "email"],
        "groupsClaim": "realm_access.roles",
    }
    given = variables(of_kind("Deployment", rendered({"oidc": oidc}))["jobgate-api"])
    names = {f"{ENV_PREFIX}{name.upper()}" for name in SignInSettings.model_fields if name.startswith("oidc_")}
    settings = {name.removeprefix(ENV_PREFIX).lower(): given[name] for name in names}
    read = SignInSettings(**settings).oidc()
    assert read is not None
    assert (read.audience, read.scopes) == ("api", "openid groups")
    assert (read.claims.name, read.claims.groups) == (("upn", "email"), "realm_access.roles")


@pytest.mark.parametrize(
    ("issuer", "peers", "port"),
    [
        ("https://id.example/realms/lab", [], 443),
        ("https://id.example:8443", [{"ipBlock": {"cidr": "192.0.2.0/24"}}], 8443),
    ],
)
def test_limited_connections_of_the_api_reach_the_issuer(issuer: str, peers: list[Object], port: int) -> None:
    oidc = {**EVERYTHING["oidc"], "issuer": issuer, "egressTo": peers}
    policies = of_kind("NetworkPolicy", rendered({**EVERYTHING, "oidc": oidc}))
    own = EVERYTHING["networkPolicy"]["egress"]
    to_issuer = {"ports": [{"port": port, "protocol": "TCP"}]} | ({"to": peers} if peers else {})
    assert policies["jobgate-api"]["spec"]["egress"] == [*own, to_issuer]
    assert policies["jobgate-controller"]["spec"]["egress"] == own
    unlimited = of_kind("NetworkPolicy", rendered({"oidc": oidc}))
    assert all("egress" not in policy["spec"] for policy in unlimited.values())


def selectors(found: Object) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The labels by which an object selects pods or Services, with what it selects."""
    spec = found["spec"]
    match found["kind"]:
        case "Deployment":
            yield "pods", spec["selector"]["matchLabels"]
            for spread in spec["template"]["spec"]["topologySpreadConstraints"]:
                yield "pods", spread["labelSelector"]["matchLabels"]
        case "Service":
            yield "pods", spec["selector"]
        case "PodDisruptionBudget":
            yield "pods", spec["selector"]["matchLabels"]
        case "NetworkPolicy":
            yield "pods", spec["podSelector"]["matchLabels"]
        case "ServiceMonitor":
            yield "services", spec["selector"]["matchLabels"]


def test_objects_select_the_pods_and_services_of_their_component() -> None:
    found = rendered(EVERYTHING)
    pods = {name: each["spec"]["template"]["metadata"]["labels"] for name, each in of_kind("Deployment", found).items()}
    services = {name: each["metadata"]["labels"] for name, each in of_kind("Service", found).items()}
    assert len(services) == 2
    selecting = [each for each in found if "spec" in each and any(selectors(each))]
    assert len(selecting) == 12
    for each in selecting:
        for what, labels in selectors(each):
            among = pods if what == "pods" else services
            selected = {name for name, has in among.items() if labels.items() <= has.items()}
            component = each["metadata"]["labels"].get("app.kubernetes.io/component")
            expected = {f"jobgate-{component}"} if component else {"jobgate-metrics"}
            if component == "metrics":
                expected = set(pods)
            assert selected == expected, each["metadata"]["name"]


def test_ports_are_named_alike() -> None:
    found = rendered(EVERYTHING)
    named = {port["name"] for each in of_kind("Deployment", found).values() for port in container(each)["ports"]}
    (endpoint,) = of_kind("ServiceMonitor", found)["jobgate"]["spec"]["endpoints"]
    (rule,) = of_kind("Ingress", found)["jobgate"]["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    services = of_kind("Service", found)
    assert path["backend"]["service"]["name"] in services
    used = {endpoint["port"], path["backend"]["service"]["port"]["name"]}
    used |= {port["targetPort"] for each in services.values() for port in each["spec"]["ports"]}
    used |= {port["name"] for each in services.values() for port in each["spec"]["ports"]}
    for policy in of_kind("NetworkPolicy", found).values():
        used |= {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert used == named == {"http", "metrics"}


def test_the_autoscaler_owns_the_number_of_pods() -> None:
    assert of_kind("Deployment", rendered({}))["jobgate-api"]["spec"]["replicas"] == 2
    found = rendered(EVERYTHING)
    assert "replicas" not in of_kind("Deployment", found)["jobgate-api"]["spec"]
    (autoscaler,) = of_kind("HorizontalPodAutoscaler", found).values()
    assert autoscaler["spec"]["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "jobgate-api",
    }


def test_the_ingress_uses_tls() -> None:
    (ingress,) = of_kind("Ingress", rendered(EVERYTHING)).values()
    assert ingress["spec"]["tls"] == [{"hosts": ["jobgate.example"], "secretName": "jobgate-tls"}]


def test_the_rule_file_is_included_unchanged() -> None:
    (rules,) = of_kind("PrometheusRule", rendered(EVERYTHING)).values()
    assert rules["spec"] == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())


def test_every_setting_can_be_given() -> None:
    values = {
        "settings": {"JOBGATE_MAX_OPEN": "1000"},
        "serverUrl": "https://jobgate.example",
        "shutdown": {"drainSeconds": 9},
    }
    deployments = of_kind("Deployment", rendered(values))
    assert "jobgate-api" in deployments
    for name, deployment in deployments.items():
        environment = variables(deployment)
        assert environment["JOBGATE_MAX_OPEN"] == "1000"
        assert environment["JOBGATE_SERVER_URL"] == "https://jobgate.example"
        assert environment["JOBGATE_DRAIN_SECONDS"] == ("9" if name == "jobgate-api" else "0")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"api": {"replcas": 3}}, "replcas"),
        ({"settings": {"JOBGATE_ROLE": "all"}}, "JOBGATE_ROLE"),
        ({"shutdown": {"drainSeconds": 25}}, "shutdown.drainSeconds must be less than shutdown.timeoutSeconds"),
    ],
)
def test_helm_refuses_wrong_values(values: Mapping[str, Any], message: str) -> None:
    ran = template(values)
    assert ran.returncode != 0
    assert message in ran.stderr


def test_two_releases_share_a_cluster() -> None:
    """Names of cluster-scoped objects contain the name of the release."""
    one, two = (
        {(each["kind"], each["metadata"]["name"]) for each in rendered(EVERYTHING, release=release)}
        for release in ("jobgate", "second")
    )
    assert one.isdisjoint(two)
    assert all(name.startswith("second-jobgate") for _, name in two)
