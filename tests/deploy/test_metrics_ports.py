"""Metrics have a port of their own, which a scraper reaches in every process and clients do not."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.deploy.chart import EVERYTHING, of_kind, rendered
from tests.deploy.rights import DEPLOY, documents

Object = dict[str, Any]


def of_deploy() -> list[Object]:
    return [found for name in ("api", "controller", "metrics") for found in documents(DEPLOY / f"{name}.yaml")]


SOURCES: dict[str, Callable[[], list[Object]]] = {"deploy": of_deploy, "chart": lambda: rendered(EVERYTHING)}


def labels_of(deployment: Object) -> dict[str, str]:
    labels: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return labels


@pytest.mark.parametrize("source", SOURCES)
def test_every_process_serves_metrics_on_the_named_port(source: str) -> None:
    deployments = of_kind("Deployment", SOURCES[source]())
    assert len(deployments) > 1
    for name, deployment in deployments.items():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        variables = {variable["name"]: variable.get("value") for variable in container["env"]}
        assert variables["JOBGATE_METRICS_PORT"] == str(ports["metrics"]), name
        assert ports["metrics"] != ports["http"]


@pytest.mark.parametrize("source", SOURCES)
def test_one_service_finds_all_processes_and_no_other_publishes_metrics(source: str) -> None:
    found = SOURCES[source]()
    deployments = of_kind("Deployment", found)
    services = of_kind("Service", found)
    (metrics,) = (each for each in services.values() if each["spec"].get("clusterIP") == "None")
    selector = metrics["spec"]["selector"].items()
    assert all(selector <= labels_of(deployment).items() for deployment in deployments.values())
    assert [port["targetPort"] for port in metrics["spec"]["ports"]] == ["metrics"]
    others = [each for each in services.values() if each is not metrics]
    assert [port["targetPort"] for each in others for port in each["spec"]["ports"]] == ["http"]
    for ingress in of_kind("Ingress", found).values():
        backends = [path["backend"]["service"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]
        assert [backend["port"] for backend in backends] == [{"name": "http"}]
        assert metrics["metadata"]["name"] not in [backend["name"] for backend in backends]


def test_the_example_of_a_scrape_keeps_the_service_and_its_port() -> None:
    jobs: Any = documents(DEPLOY / "monitoring" / "scrape.example.yaml")[0]
    (job,) = jobs
    (service,) = of_kind("Service", documents(DEPLOY / "metrics.yaml")).values()
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    (port,) = service["spec"]["ports"]
    kept = [each["regex"] for each in job["relabel_configs"] if each.get("action") == "keep"]
    assert kept == [f"{name};{port['name']}"]
    assert job["kubernetes_sd_configs"] == [{"role": "endpoints", "namespaces": {"names": [namespace]}}]
    assert job["honor_labels"] is True, "metrics of jobs have the label namespace"
