"""Kubernetes gives each pod the time that it needs to stop without losing a request, and to answer probes."""

from collections.abc import Callable
from typing import Any

import pytest

from app.running.bootstrap import GRACEFUL_SHUTDOWN
from app.running.readiness import PROOF_WITHIN
from app.running.supervised import BLOCKED_SECONDS
from app.settings import Settings
from tests.deploy.chart import of_kind, rendered
from tests.deploy.rights import DEPLOY, documents
from tests.deploy.test_compose import parsed

Object = dict[str, Any]


def of_deploy() -> list[Object]:
    return [document for name in ("api", "controller") for document in documents(DEPLOY / f"{name}.yaml")]


SOURCES: dict[str, Callable[[], list[Object]]] = {
    "deploy": of_deploy,
    "chart": lambda: rendered({}),
    "chart with other times": lambda: rendered(
        {"shutdown": {"preStopSeconds": 20, "drainSeconds": 40, "timeoutSeconds": 60}}
    ),
    "chart without a hook": lambda: rendered({"shutdown": {"preStopSeconds": 0}}),
}


def settings_of(container: Object, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the process that the container runs."""
    for variable in container["env"]:
        if "value" in variable:
            monkeypatch.setenv(variable["name"], variable["value"])
    name, options = parsed(container["command"][1:])
    assert name == "serve"
    return Settings(**{key: value for key, value in options.items() if value is not None})


def seconds_before_sigterm(container: Object) -> float:
    hook = container.get("lifecycle", {}).get("preStop")
    if hook is None:
        return 0.0
    program, seconds = hook["exec"]["command"]
    assert program == "sleep"
    return float(seconds)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("component", ["api", "controller"])
def test_the_grace_period_covers_hook_and_shutdown(
    source: str, component: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = of_kind("Deployment", SOURCES[source]())[f"jobgate-{component}"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = settings_of(container, monkeypatch)
    assert settings.role == component
    grace = pod["terminationGracePeriodSeconds"]
    assert grace > seconds_before_sigterm(container) + settings.shutdown_timeout
    assert settings.drain_seconds + GRACEFUL_SHUTDOWN < settings.shutdown_timeout
    if component == "controller":
        assert (settings.drain_seconds, seconds_before_sigterm(container)) == (0, 0), "it serves no clients"
    else:
        assert settings.drain_seconds > 0


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("component", ["api", "controller"])
def test_probes_wait_as_long_as_the_gateway_itself(source: str, component: str) -> None:
    pod = of_kind("Deployment", SOURCES[source]())[f"jobgate-{component}"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    liveness, readiness = container["livenessProbe"], container["readinessProbe"]
    assert liveness["timeoutSeconds"] * liveness["failureThreshold"] >= BLOCKED_SECONDS
    # A probe that fails at once is repeated in each period.
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= BLOCKED_SECONDS
    assert readiness["timeoutSeconds"] > PROOF_WITHIN


def test_api_pods_serve_until_they_are_removed_from_their_endpoints() -> None:
    for source in ("deploy", "chart"):
        pod = of_kind("Deployment", SOURCES[source]())["jobgate-api"]["spec"]["template"]["spec"]
        assert seconds_before_sigterm(pod["containers"][0]) >= 5, source
