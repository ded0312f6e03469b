from typing import Any

from devcluster.node.network.hosts import body_for, header_for, hostname_of, service_names


def pod(name: str, ip: str, *, ready: bool = True, phase: str = "Running", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    metadata = {"name": name, "namespace": "ns", "labels": {"job": "x"}}
    return {"metadata": metadata, "spec": spec, "status": {"podIP": ip, "phase": phase, "conditions": conditions}}


def service(name: str, namespace: str = "ns", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": {"job": "x"}, **spec}}


def test_a_headless_service_names_itself_and_each_hostname() -> None:
    pods = [pod("a", "127.2.0.1", hostname="a", subdomain="job"), pod("b", "127.2.0.2", hostname="b", subdomain="job")]
    names = service_names([service("job", clusterIP="None")], pods)
    assert names == {
        "ns": {
            "job": ["127.2.0.1", "127.2.0.2"],
            "a.job": ["127.2.0.1"],
            "b.job": ["127.2.0.2"],
        }
    }
    assert body_for("ns", names).splitlines() == [
        "127.2.0.1\ta.job.ns.svc.cluster.local a.job.ns.svc a.job.ns a.job",
        "127.2.0.2\tb.job.ns.svc.cluster.local b.job.ns.svc b.job.ns b.job",
        "127.2.0.1\tjob.ns.svc.cluster.local job.ns.svc job.ns job",
        "127.2.0.2\tjob.ns.svc.cluster.local job.ns.svc job.ns job",
    ]
    assert "\ta.job.ns.svc.cluster.local a.job.ns.svc a.job.ns\n" in body_for("elsewhere", names)


def test_only_a_service_that_publishes_not_ready_addresses_names_such_pods() -> None:
    pods = [pod("a", "127.2.0.1", ready=False), pod("b", "127.2.0.2")]
    assert service_names([service("s")], pods)["ns"] == {"s": ["127.2.0.2"]}
    assert service_names([service("s", publishNotReadyAddresses=True)], pods)["ns"] == {"s": ["127.2.0.1", "127.2.0.2"]}


def test_ended_pods_other_namespaces_and_services_without_selector_count_not() -> None:
    pods = [pod("a", "127.2.0.1", phase="Succeeded"), pod("b", "127.2.0.2")]
    services = [service("s"), service("other", "elsewhere"), service("manual", selector=None)]
    assert service_names(services, pods) == {
        "ns": {
            "s": ["127.2.0.2"],
        },
        "elsewhere": {},
    }


def test_the_header_is_the_pods_own() -> None:
    aliases = [{"ip": "10.0.0.1", "hostnames": ["foo", "bar"]}]
    lines = header_for(pod("a", "127.2.0.1", subdomain="job", hostAliases=aliases), "127.2.0.1").splitlines()
    assert lines[1:] == [
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost",
        "127.2.0.1\ta.job.ns.svc.cluster.local\ta",
        "10.0.0.1\tfoo bar",
    ]


def test_long_pod_names_are_cut_to_a_hostname() -> None:
    assert hostname_of(pod("a" * 62 + "-" + "b" * 9, "")) == "a" * 62
