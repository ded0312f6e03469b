"""deploy/rbac.yaml grants what the code asks of a cluster, and nothing beyond it."""

import ast
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from app.k8s import resources
from app.k8s.resources import KubeResource
from tests.deploy.chart import grants, rendered
from tests.deploy.rights import DRY_RUN, LOGS, NAMESPACED, QUEUES, RBAC, SAMPLE_SETS, Right, apply, documents, granted
from tests.support.clusters.cluster import require_real
from tests.support.clusters.kube import Cluster, KubeClient

ROOT = Path(__file__).parents[2]
# The modules of the controller that call the cluster.
CALLERS = (*(ROOT / "app" / "loops").rglob("*.py"), ROOT / "app" / "k8s" / "events.py")

# What the controller asks for, by the resource of app.k8s.resources that it is asked by.
CONTROLLER: dict[str, frozenset[str]] = {
    "POD": frozenset({"get", "list", "watch", "create", "patch", "delete"}),
    "POD/log": frozenset({"get"}),
    "SERVICE": frozenset({"get", "list", "create", "delete"}),
    "CONFIG_MAP": frozenset({"get", "list", "create", "patch", "delete"}),
    "POD_GROUPS": frozenset({"get", "list", "create", "delete"}),
    "EVENT": frozenset({"list"}),
    "NODE": frozenset({"list", "watch"}),
    "NAMESPACE": frozenset({"get", "list", "watch"}),  # get: of kube-system
}
# What it asks for beside that where there are SampleSets.
OF_SETS: dict[str, frozenset[str]] = {
    "PERSISTENT_VOLUME": frozenset({"get", "list", "create", "delete"}),
    "PERSISTENT_VOLUME_CLAIM": frozenset({"get", "list", "watch", "create", "delete"}),
    "STATEFUL_SET": frozenset({"get", "list", "watch", "create", "delete"}),
    "STATEFUL_SET/scale": frozenset({"patch"}),
    "SECRET": frozenset({"get", "create", "delete"}),
    "NODE": frozenset({"patch"}),
    "POD/proxy": frozenset({"get", "create"}),
}
# What it asks for beside that where Kueue admits jobs.
OF_QUEUES: dict[str, frozenset[str]] = {
    "WORKLOAD": frozenset({"get", "list", "watch", "create", "patch", "delete"}),
    "WORKLOAD/status": frozenset({"patch"}),
    "LOCAL_QUEUE": frozenset({"list", "watch"}),
    "CLUSTER_QUEUE": frozenset({"list", "watch"}),
    "COHORT": frozenset({"list", "watch"}),
    "PENDING_WORKLOADS/pendingworkloads": frozenset({"get"}),
    "RESOURCE_FLAVOR": frozenset({"list", "watch"}),
    "WORKLOAD_PRIORITY_CLASS": frozenset({"get"}),
    "PRIORITY_CLASS": frozenset({"get", "list"}),
}
API = {"POD/log": frozenset({"get"})}
KEEPERS = {"POD": frozenset({"get", "list", "watch"}), "POD/log": frozenset({"get"})}

EVERY_FILE = (RBAC, NAMESPACED, SAMPLE_SETS, QUEUES, DRY_RUN, LOGS)
ALL_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
FOREIGN = (
    ("", "serviceaccounts"),
    ("", "endpoints"),
    ("apps", "deployments"),
    ("batch", "jobs"),
    ("coordination.k8s.io", "leases"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)
CLUSTER_SCOPED = (
    "nodes",
    "namespaces",
    "persistentvolumes",
    "clusterroles",
    "resourceflavors",
    "clusterqueues",
    "cohorts",
    "clusterqueues/pendingworkloads",
    "workloadpriorityclasses",
    "priorityclasses",
)
POD_SUBRESOURCES = ("exec", "attach", "portforward", "status", "eviction", "binding", "ephemeralcontainers")


def wanted(needs: dict[str, frozenset[str]]) -> set[Right]:
    rights: set[Right] = set()
    for key, verbs in needs.items():
        name, _, subresource = key.partition("/")
        for resource, verb in product(_resources(name), verbs):
            group = resource.api_version.rpartition("/")[0]
            plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
            names = ("kube-system",) if (name, verb) == ("NAMESPACE", "get") else ()
            rights.add(Right(group, plural, verb, names))
    return rights


@pytest.mark.parametrize(
    ("subject", "needs"), [("jobgate-controller", CONTROLLER), ("gateway", CONTROLLER), ("jobgate-api", API)]
)
def test_grants_exactly_what_is_needed(subject: str, needs: dict[str, frozenset[str]]) -> None:
    assert granted(subject, documents(RBAC)) == wanted(needs)


def test_the_processes_that_keep_logs_only_read() -> None:
    assert granted("jobgate-logs", documents(LOGS)) == wanted(KEEPERS)
    for subject in ("jobgate-controller", "jobgate-api", "gateway"):
        assert granted(subject, documents(LOGS)) == set()


@pytest.mark.parametrize(("path", "needs"), [(SAMPLE_SETS, OF_SETS), (QUEUES, OF_QUEUES)])
def test_sets_and_queues_take_rights_of_their_own(path: Path, needs: dict[str, frozenset[str]]) -> None:
    for subject in ("jobgate-controller", "gateway"):
        assert granted(subject, documents(path)) == wanted(needs)
    assert granted("jobgate-api", documents(path)) == set()


def test_dry_runs_need_the_right_to_create_the_objects_of_jobs() -> None:
    """The kinds are those that app.domain.manifests renders for a job."""
    needs = {name: frozenset({"create"}) for name in ("POD", "SERVICE", "CONFIG_MAP", "POD_GROUPS")}
    assert granted("jobgate-api", documents(DRY_RUN)) == wanted(needs)
    for subject in ("jobgate-controller", "gateway"):
        assert wanted(needs) < granted(subject, documents(RBAC))


def test_nothing_is_granted_by_a_wildcard() -> None:
    found = [document for path in EVERY_FILE for document in documents(path)]
    rules = [rule for document in found for rule in document.get("rules", ())]
    assert rules
    assert [rule for rule in rules if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]] == []


def test_bindings_name_what_is_there() -> None:
    found = [document for path in EVERY_FILE for document in documents(path)]
    accounts = {(d["metadata"]["name"], d["metadata"]["namespace"]) for d in found if d["kind"] == "ServiceAccount"}
    roles = {(d["kind"], d["metadata"]["name"]) for d in found if d["kind"].endswith("Role")}
    bindings = [d for d in found if d["kind"].endswith("RoleBinding")]
    assert bindings
    for binding in bindings:
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount":
                assert (subject["name"], subject["namespace"]) in accounts


def calls_of_the_code() -> dict[str, set[str]]:
    """Verbs by resource, of every call in CALLERS whose resource can be read off the call."""
    verbs = {"get": "get", "list_page": "list", "list_all": "list", "watch": "watch", "merge_patch": "patch"}
    verbs |= {"json_patch": "patch", "release": "patch", "delete": "delete", "ResourceSource": "list"}
    found: dict[str, set[str]] = {}
    for path in CALLERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            known = [a.id for a in node.args if isinstance(a, ast.Name) and _resources(a.id)]
            if name in verbs and known:
                scaled = any(k.arg == "subresource" and isinstance(k.value, ast.Constant) for k in node.keywords)
                found.setdefault(f"{known[0]}/scale" if scaled else known[0], set()).add(verbs[name])
    return found


def _resources(name: str) -> tuple[KubeResource, ...]:
    """The resource or resources that app.k8s.resources has under this name; none if it is something else."""
    found = getattr(resources, name, ())
    listed = found if isinstance(found, tuple) else (found,)
    return tuple(resource for resource in listed if isinstance(resource, KubeResource))


def test_covers_every_call_of_the_code() -> None:
    """A call that is new in CALLERS needs its right in deploy/, and its line in the tables above."""
    calls = calls_of_the_code()
    assert {"POD", "CONFIG_MAP", "EVENT", "NAMESPACE"} <= calls.keys(), "the scan no longer finds the calls"
    for name, verbs in calls.items():
        tables = (CONTROLLER, OF_SETS, OF_QUEUES)
        assert verbs <= frozenset().union(*(table.get(name, frozenset()) for table in tables)), name


def test_knows_every_resource_that_the_code_names() -> None:
    imported: set[str] = set()
    for path in CALLERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "app.k8s.resources":
                imported |= {alias.name for alias in node.names if _resources(alias.name)}
    assert imported == {key.partition("/")[0] for key in (*CONTROLLER, *OF_SETS, *OF_QUEUES)}


async def allowed(api: KubeClient, user: str, right: Right, namespace: str = "team-a") -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    if right.resource not in CLUSTER_SCOPED:
        attributes["namespace"] = namespace
    if right.names:
        attributes["name"] = right.names[0]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes},
    }
    answer = (await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)).ok()
    return bool(answer["status"]["allowed"])


def asked(rights: set[Right]) -> set[Right]:
    """These rights, and all that a bound role could grant beyond them."""
    found = rights | {Right(group, resource, verb) for group, resource in FOREIGN for verb in ALL_VERBS}
    known = wanted(CONTROLLER) | wanted(OF_SETS) | wanted(OF_QUEUES)
    found |= {Right(right.group, right.resource, verb) for right in known for verb in ALL_VERBS}
    return found | {Right("", f"pods/{name}", verb) for name in POD_SUBRESOURCES for verb in ("get", "create", "patch")}


def given_by_deploy() -> list[dict[str, Any]]:
    return documents(RBAC) + documents(SAMPLE_SETS) + documents(QUEUES)


def given_by_chart() -> list[dict[str, Any]]:
    values = {"rbac": {"user": "gateway-of-chart"}, "sampleSets": {"enabled": True}, "queues": {"enabled": True}}
    return grants(rendered(values, release="charted", namespace="charted"))


@pytest.mark.parametrize(
    ("given", "controllers", "api_account"),
    [
        (
            given_by_deploy,
            ("gateway", "system:serviceaccount:jobgate-system:jobgate-controller"),
            "system:serviceaccount:jobgate-system:jobgate-api",
        ),
        (
            given_by_chart,
            ("gateway-of-chart", "system:serviceaccount:charted:charted-jobgate-controller"),
            "system:serviceaccount:charted:charted-jobgate-api",
        ),
    ],
    ids=["deploy", "chart"],
)
async def test_a_real_cluster_allows_this_and_no_more(
    cluster: Cluster,
    api: KubeClient,
    given: Callable[[], list[dict[str, Any]]],
    controllers: tuple[str, str],
    api_account: str,
) -> None:
    require_real(cluster, "RBAC")
    await apply(api, given())
    every = wanted(CONTROLLER) | wanted(OF_SETS) | wanted(OF_QUEUES)
    needs = dict.fromkeys(controllers, every)
    for user, rights in (needs | {api_account: wanted(API)}).items():
        assert {right for right in asked(rights) if await allowed(api, user, right)} == rights, user


async def test_rights_of_the_chart_in_some_namespaces_end_there(
    cluster: Cluster, api: KubeClient, namespace: str
) -> None:
    require_real(cluster, "RBAC")
    values = {"namespaces": [namespace], "sampleSets": {"enabled": True}}
    placed = [
        found | {"metadata": {"namespace": namespace} | found["metadata"]}
        if found["kind"] in ("Role", "RoleBinding")
        else found
        for found in grants(rendered(values, release=namespace, namespace=namespace))
    ]
    await apply(api, placed)
    user = f"system:serviceaccount:{namespace}:{namespace}-jobgate-controller"
    rights = wanted(CONTROLLER) | wanted(OF_SETS)
    everywhere = {right for right in rights if right.resource in CLUSTER_SCOPED}
    for where, expected in ((namespace, rights), ("default", everywhere)):
        assert {right for right in asked(rights) if await allowed(api, user, right, where)} == expected, where
