"""Each control of the pod policy on pods that differ from a harmless one in a field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Forbidden
from app.domain.policy import CONTROLS, JOBGATE_CONTROLS, DeclaredTemplate, Level, PodPolicy
from app.domain.policy.keys import is_pattern
from tests.support.json_values import JSON_VALUES, UNHURRIED
from tests.support.pod_templates.security import CASES, RESTRICTED_POD, WITHOUT_USER_NAMESPACES, PodCase

AT = "/spec/replicaSpecs/3/template"


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def apart(**term: Any) -> dict[str, Any]:
    """Return fields of a pod that keeps away from the pods of this term."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, **term}
    return {"/spec/affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def near(**term: Any) -> dict[str, Any]:
    """Return fields of a pod that prefers to be near the pods of this term."""
    weighted = {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", **term}}
    return {"/spec/affinity": {"podAffinity": {PREFERRED: [weighted]}}}


def declared(template: dict[str, Any]) -> list[DeclaredTemplate]:
    return [DeclaredTemplate.at(template, AT)]


def violated(template: dict[str, Any], **policy: Any) -> list[tuple[str, str]]:
    """(control, pointer) of each violation."""
    errors = list(PodPolicy(**policy).violations(declared(template)))
    assert all(error.accepted and error.detail for error in errors)
    return [(error.code, error.pointer.removeprefix(AT)) for error in errors]


def codes(template: dict[str, Any], **policy: Any) -> set[str]:
    return {code for code, _ in violated(template, **policy)}


@pytest.mark.parametrize("name", CASES)
def test_levels_agree_with_the_table(name: str) -> None:
    case = CASES[name]
    template = case.template()
    assert codes(template, user_namespaces=True) == set(case.baseline.split())
    assert codes(template, level=Level.RESTRICTED, user_namespaces=True) == set(case.violates_restricted.split())
    assert violated(template, level=Level.PRIVILEGED) == []


@pytest.mark.parametrize("name", CASES)
def test_levels_agree_with_the_table_without_user_namespaces(name: str) -> None:
    case = CASES[name]
    baseline, restricted = WITHOUT_USER_NAMESPACES.get(name, (case.baseline, case.violates_restricted))
    assert codes(case.template()) == set(baseline.split())
    assert codes(case.template(), level=Level.RESTRICTED) == set(restricted.split())


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("name", CASES)
def test_host_users_lifts_no_control_by_default(name: str, level: Level) -> None:
    """A cluster may drop the field, so the pod is checked as if it did not have it."""
    template = CASES[name].template()
    shared = {**template, "spec": {key: value for key, value in template["spec"].items() if key != "hostUsers"}}
    own = {**template, "spec": {**template["spec"], "hostUsers": False}}
    assert violated(own, level=level) == violated(shared, level=level)


def test_the_tables_have_a_violation_of_every_control() -> None:
    violations = [(case.baseline, case.violates_restricted) for case in CASES.values()]
    found = {code for levels in (*violations, *WITHOUT_USER_NAMESPACES.values()) for code in " ".join(levels).split()}
    assert found == set(CONTROLS)


@pytest.mark.parametrize(
    ("fields", "control", "pointer"),
    [
        ({"/spec/nodeName": "n1"}, "NodeName", "/spec/nodeName"),
        ({"/spec/priorityClassName": "system-cluster-critical"}, "PriorityClass", "/spec/priorityClassName"),
        ({"/spec/priorityClassName": "system-node-critical"}, "PriorityClass", "/spec/priorityClassName"),
        ({"/spec/serviceAccountName": "jobgate-controller"}, "ServiceAccount", "/spec/serviceAccountName"),
        ({"/spec/serviceAccount": "jobgate-controller"}, "ServiceAccount", "/spec/serviceAccount"),
        *(
            (apart(**{field: value}), "ForeignPods", f"/spec/affinity/podAntiAffinity/{REQUIRED}/0/{field}")
            for field, value in (("namespaces", ["team-b"]), ("namespaceSelector", {}))
        ),
        (
            near(namespaceSelector={"matchLabels": {"team": "b"}}),
            "ForeignPods",
            f"/spec/affinity/podAffinity/{PREFERRED}/0/podAffinityTerm/namespaceSelector",
        ),
        *(
            ({"/metadata/annotations": {key: value}}, "Annotations", "/metadata/annotations/" + key.replace("/", "~1"))
            for key, value in {
                "kubernetes.io/config.mirror": "x",
                "io.kubernetes.cri-o.Devices": "/dev/sda",
                "cni.projectcalico.org/ipAddrs": "[]",
                "sidecar.istio.io/userVolume": "[]",
                "k8s.v1.cni.cncf.io/networks": "kube-system/host-net",
                "v1.multus-cni.io/default-network": "rdma",
                "io.katacontainers.config.hypervisor.kernel_params": "agent.debug_console",
                "cpu-load-balancing.crio.io": "disable",
                "devices.nri.io/container.main": "- path: /dev/sda",
                "run.oci.handler": "krun",
                "dev.gvisor.spec.mount.x.type": "bind",
                "iam.amazonaws.com/role": "admin",
                "policy.cilium.io/proxy-visibility": "",
                "traffic.sidecar.istio.io/excludeOutboundPorts": "443",
                "proxy.istio.io/config": "{}",
                "ad.datadoghq.com/main.checks": "{}",
                "kubernetes.io/psp": "privileged",
                "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
            }.items()
        ),
        *(
            ({"/metadata/labels": {key: "true"}}, "Labels", "/metadata/labels/" + key.replace("/", "~1"))
            for key in (
                "sidecar.istio.io/inject",
                "security.istio.io/tlsMode",
                "azure.workload.identity/use",
                "kueue.x-k8s.io/queue-name",
                "kubernetes.io/cluster-service",
                "example.com/team",
                "aadpodidbinding",
                "io.cilium.k8s.policy",
            )
        ),
    ],
)
def test_controls_of_jobgates_own(fields: dict[str, Any], control: str, pointer: str) -> None:
    template = PodCase(fields=fields).template()
    for level in Level:
        assert violated(template, level=level) == [(control, pointer)]
    assert violated(template, allow=frozenset({control})) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"/spec/priorityClassName": "high"},
        {"/spec/serviceAccountName": "default", "/spec/serviceAccount": "default"},
        {"/spec/serviceAccountName": "", "/spec/nodeName": ""},
        {"/spec/serviceAccountName": "trainer"},
        apart(),
        apart(namespaces=[], namespaceSelector=None),
        near(labelSelector={"matchLabels": {"app": "train"}}),
        {"/metadata/annotations": {"sidecar.istio.io/inject": "false", "k8s.v1.cni.cncf.io/networks": "rdma"}},
        {"/metadata/annotations": {"note": "io.katacontainers.x", "prometheus.io/scrape": "true", "CreatedBy": "me"}},
        {
            "/metadata/annotations": {
                "kubectl.kubernetes.io/default-container": "main",
                "kubernetes.io/description": "d",
            }
        },
        {"/metadata/annotations": {"jobgate.dev/main-container": "train"}},
        {"/metadata/labels": {"app": "train", "job_type": "x", "app.kubernetes.io/name": "train"}},
    ],
)
def test_what_the_controls_of_jobgates_own_accept(fields: dict[str, Any]) -> None:
    template = PodCase(fields=fields).template()
    assert violated(template, service_accounts=frozenset({"trainer"})) == []


@pytest.mark.parametrize("field", ["annotations", "labels"])
@pytest.mark.parametrize(
    ("key", "patterns", "accepted"),
    [
        ("example.com/team", {"example.com/*"}, True),
        ("example.com/team", {"example.com/team"}, True),
        ("example.com/team", {"*"}, True),
        ("example.com/team", {"example.com/tea"}, False),
        ("example.com.evil/team", {"example.com/*"}, False),
        ("io.kubernetes.cri-o.umask", {"io.kubernetes.cri-o.*"}, True),
        ("aadpodidbinding", {"aadpodidbinding"}, True),
    ],
)
def test_settings_allow_further_keys(field: str, key: str, patterns: set[str], *, accepted: bool) -> None:
    template = PodCase(fields={f"/metadata/{field}": {key: "x"}}).template()
    found = violated(template, **{field: frozenset(patterns)})
    assert found == ([] if accepted else [(field.title(), f"/metadata/{field}/{key.replace('/', '~1')}")])
    error = next(
        iter(PodPolicy().violations(declared(PodCase(fields={f"/metadata/{field}": {"a.b/c": "x"}}).template())))
    )
    assert f"JOBGATE_POD_POLICY_{field.upper()}" in (error.accepted or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True),
        ("a/b", True),
        ("a.b/*", True),
        ("*", True),
        ("", False),
        ("/a", False),
        ("a*b", False),
        ("a b", False),
    ],
)
def test_patterns_of_keys(text: str, *, expected: bool) -> None:
    assert is_pattern(text) is expected


def test_any_service_account_may_be_allowed() -> None:
    template = PodCase(fields={"/spec/serviceAccountName": "anything"}).template()
    assert violated(template, service_accounts=frozenset({"*"})) == []


@pytest.mark.parametrize("control", [*CONTROLS, *JOBGATE_CONTROLS])
def test_a_control_that_is_allowed_is_not_enforced(control: str) -> None:
    for case in CASES.values():
        for level in Level:
            found = {code for code, _ in violated(case.template(), level=level, allow=frozenset({control}))}
            assert control not in found


def test_every_violation_is_reported_once_at_its_field() -> None:
    template = PodCase(
        fields={
            "/spec/hostNetwork": True,
            "/spec/volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/"}}],
            "/spec/containers/0/securityContext/capabilities/add": ["CHOWN", "SYS_ADMIN"],
        }
    ).template()
    with pytest.raises(Forbidden) as refused:
        PodPolicy().refuse_violations(declared(template) * 2)
    assert [(error.code, error.pointer.removeprefix(AT)) for error in refused.value.errors] == [
        ("HostNetwork", "/spec/hostNetwork"),
        ("Capabilities", "/spec/containers/0/securityContext/capabilities/add/1"),
        ("HostPathVolumes", "/spec/volumes/1/hostPath"),
    ]


def test_a_template_that_complied_before_is_refused_by_another_policy_and_without_its_exemption() -> None:
    escalates = "/spec/containers/0/securityContext/allowPrivilegeEscalation"  # only the restricted level refuses it
    template = PodCase(fields={"/spec/hostNetwork": True, escalates: True}).template()
    policy, exempt = PodPolicy(), frozenset({"HostNetwork"})
    for _ in range(2):
        policy.refuse_violations(declared(template), exempt=exempt)
        with pytest.raises(Forbidden):
            policy.refuse_violations(declared(template))
        # The stored template may keep its violation, which does not make it compliant.
        policy.refuse_violations(declared(template), before=declared(template))
    with pytest.raises(Forbidden):
        PodPolicy(level=Level.RESTRICTED).refuse_violations(declared(template), exempt=exempt)
    PodPolicy(level=Level.PRIVILEGED).refuse_violations(declared(template))


def test_a_compliant_template_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, template = PodPolicy(), PodCase(fields={}).template()
    policy.refuse_violations(declared(template))
    monkeypatch.setattr(PodPolicy, "violations", None)  # a second check fails
    policy.refuse_violations(declared(template) * 2)


def test_an_edit_may_keep_stored_violations() -> None:
    stored = PodCase(fields={"/spec/hostNetwork": True}).template()
    more = PodCase(fields={"/spec/hostNetwork": True, "/spec/hostPID": True}).template()
    PodPolicy().refuse_violations(declared(stored), before=declared(stored))
    with pytest.raises(Forbidden) as refused:
        PodPolicy().refuse_violations(declared(more), before=declared(stored))
    assert [error.code for error in refused.value.errors] == ["HostPID"]


def test_a_container_without_probes_hides_no_host_of_a_later_one() -> None:
    (plain,) = RESTRICTED_POD["spec"]["containers"]
    probing = {**plain, "name": "probing", "livenessProbe": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}}
    template = {**RESTRICTED_POD, "spec": {**RESTRICTED_POD["spec"], "containers": [plain, probing]}}
    assert violated(template) == [("HostProbes", "/spec/containers/1/livenessProbe/tcpSocket/host")]


@UNHURRIED
@given(st.sampled_from([*RESTRICTED_POD["spec"], "volumes", "ephemeralContainers", "os"]), JSON_VALUES)
def test_no_value_of_a_field_breaks_a_check(field: str, value: Any) -> None:
    template = {"metadata": {"annotations": value}, "spec": {**RESTRICTED_POD["spec"], field: value}}
    for level in Level:
        list(PodPolicy(level=level).violations(declared(template)))
