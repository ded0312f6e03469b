"""The wheels of the client and of the server, in empty environments and away from the checkout."""

import email
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.e2e.user import User, job
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.plugins.workers import made_once
from tools.dist import PROJECTS, build_distributions

ROOT = Path(__file__).parents[1]
PIP = ("--quiet", "--disable-pip-version-check")
INSTALL_SECONDS = 900.0
START_SECONDS = 120.0
SERVER_PACKAGES = {"app", "cacheserver", "devcluster"}
CLIENT_REQUIREMENTS = {"httpx2", "msgspec", "pyyaml", "rich", "typer", "typing-extensions"}


def run(*command: str | Path, cwd: Path, timeout: float = 120.0) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(command), cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `source`, a copy of the checkout, and `dist`, the wheels that pip has built from it."""
    return made_once(tmp_path_factory, "built", build_wheels)


def build_wheels(directory: Path) -> None:
    """Build the wheels of the client and of the server from a copy, so that the checkout gets no build directory.

    A former build has left a module in each build directory of the copy.
    """
    source = directory / "source"
    ignore = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "bench")
    shutil.copytree(ROOT, source, ignore=ignore)
    for former in ("jobgate/build/lib/jobgate/former.py", "build/lib/app/former.py"):
        (source / former).parent.mkdir(parents=True)
        (source / former).touch()
    ran = run(
        *(sys.executable, "-m", "pip", "wheel", *PIP, "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", str(directory / "dist"), *(str(source / project) for project in PROJECTS)),
        cwd=directory,
    )
    assert ran.returncode == 0, ran.stderr


def wheels(built: Path) -> tuple[Path, Path]:
    """The wheels of the client and of the server."""
    (client,) = (built / "dist").glob("jobgate-*.whl")
    (server,) = (built / "dist").glob("jobgate_server-*.whl")
    return client, server


Installs = Callable[[str, str, str], Path]
"""Installs what is wanted beside the packages of a lock file, in an environment of this name, once in a run."""


@pytest.fixture(scope="module")
def installs(tmp_path_factory: pytest.TempPathFactory, built: Path) -> Installs:
    def made(name: str, lock_file: str, wanted: str) -> Path:
        directory = made_once(tmp_path_factory, name, lambda directory: install(directory, built, lock_file, wanted))
        return directory / "environment" / "bin" / "jobgate"

    return made


@pytest.fixture(scope="module")
def installed(installs: Installs) -> Path:
    """The command with the extras `server` and `embedded`."""
    return installs("embedded", "embedded.txt", "jobgate[server,embedded]")


@pytest.fixture(scope="module")
def light(installs: Installs) -> Path:
    """The command without extras."""
    return installs("light", "client.txt", "jobgate")


@pytest.fixture(scope="module")
def bare(installs: Installs) -> Path:
    """The command with the extra `server`."""
    return installs("bare", "runtime.txt", "jobgate[server]")


def install(directory: Path, built: Path, lock_file: str, wanted: str) -> None:
    """Create an environment with the packages of the lock file, and install what is wanted from the wheels alone."""
    environment = directory / "environment"
    venv.create(environment)
    # Compiling every module takes longer than compiling the few that a test imports.
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--no-compile", *PIP)
    locked = ROOT / "requirements" / lock_file
    ran = run(*pip, "--require-hashes", "--requirement", locked, cwd=directory, timeout=INSTALL_SECONDS)
    if ran.returncode:
        # Otherwise the index has answered, and the lock file is wrong.
        assert "after connection broken by" in ran.stderr, ran.stderr
        pytest.skip(f"pip reaches no package index: set PIP_INDEX_URL: {ran.stderr.strip().splitlines()[-1]}")
    ran = run(*pip, "--no-index", "--find-links", built / "dist", wanted, cwd=directory)
    assert ran.returncode == 0, ran.stderr


@contextmanager
def serving(command: Path, cwd: Path, **environment: str) -> Iterator[str]:
    """`jobgate serve`; its URL."""
    with (cwd / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [command, "serve", "--port", "0"],
            cwd=cwd,
            env=clean(cwd, **environment),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line.startswith("jobgate is ready at "), (cwd / "serve.log").read_text()
        yield line.split()[-1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def clean(home: Path, **environment: str) -> dict[str, str]:
    """An environment without variables that could lead Python to the checkout."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), **environment}


@pytest.mark.timeout(INSTALL_SECONDS + 400)
async def test_the_wheel_alone_migrates_serves_and_runs_a_job(
    installed: Path, empty_database_url: str, tmp_path: Path
) -> None:
    where = run(installed.parent / "python", "-c", "import app; print(app.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed.parent.parent)), where.stderr
    database = {"JOBGATE_DATABASE_URL": empty_database_url}
    migrated = subprocess.run(
        [installed, "migrate"],
        cwd=tmp_path,
        env=clean(tmp_path, **database),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert migrated.stdout == "the schema is current\n", migrated.stderr
    document = run(installed, "openapi", cwd=tmp_path).stdout
    assert document == (ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8")
    with running_embedded_cluster(tmp_path / "cluster", "--nodes", "1") as cluster:
        given = database | {"JOBGATE_KUBECONFIG": str(cluster.kubeconfig), "JOBGATE_OPEN_ACCESS": "true"}
        with serving(installed, tmp_path, **given) as url:
            async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
                user = User(http, "default")
                await user.submit(job("from-the-wheel", "echo it works"))
                assert (await user.ended("from-the-wheel"))["phase"] == "Succeeded"
                assert (await user.call("GET", "/from-the-wheel/logs")).text == "it works\n"


def ran_in(home: Path, *command: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=home,
        env=clean(home, **environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.timeout(INSTALL_SECONDS + 400)
def test_without_the_extra_embedded_commands_work_or_name_it(
    bare: Path, empty_database_url: str, tmp_path: Path
) -> None:
    database = {"JOBGATE_DATABASE_URL": empty_database_url}
    assert "devcluster" in ran_in(tmp_path, bare, "--help").stdout
    assert ran_in(tmp_path, bare, "migrate", **database).stdout == "the schema is current\n"
    created = ran_in(tmp_path, bare, "token", "create", "me", "--namespace", "a", **database)
    assert created.stdout.startswith("jg_"), created.stderr
    assert " me " in ran_in(tmp_path, bare, "token", "list", **database).stdout
    assert "JOBGATE_DATABASE_URL" in ran_in(tmp_path, bare, "serve", "--help").stdout
    # The embedded cluster needs only cryptography, which the gateway needs too.
    for command in (["dev", "--port", "0"], ["demo", "--port", "0", "--exit"]):
        refused = ran_in(tmp_path, bare, *command)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert "jobgate[server,embedded]" in refused.stderr, command


@pytest.mark.timeout(INSTALL_SECONDS + 400)
def test_without_extras_the_client_works_and_commands_of_the_server_name_the_extra(light: Path, tmp_path: Path) -> None:
    shown = ran_in(tmp_path, light, "--help")
    assert (shown.returncode, " submit " in shown.stdout, " serve " in shown.stdout) == (0, True, True), shown.stderr
    imported = run(light.parent / "python", "-c", "from jobgate.client import AsyncClient, Client", cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    unanswered = ran_in(tmp_path, light, "list", "--server", "http://127.0.0.1:1")
    assert unanswered.returncode == 2
    assert "no answer from http://127.0.0.1:1" in unanswered.stderr
    refused = ran_in(tmp_path, light, "serve")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "jobgate[server]" in refused.stderr


@pytest.mark.timeout(INSTALL_SECONDS + 400)
def test_the_client_leaves_the_names_of_other_projects_free(light: Path, tmp_path: Path) -> None:
    """`app` is the name of many programs."""
    (packages,) = light.parent.parent.glob("lib/*/site-packages")
    installed = {path.name for path in packages.iterdir()}
    assert "jobgate" in installed
    assert not installed & {*SERVER_PACKAGES, "examples", "migrations", "tests"}
    (tmp_path / "app.py").write_text("raise AssertionError('the command has imported the program of the user')\n")
    refused = ran_in(tmp_path, light, "serve", PYTHONPATH=str(tmp_path))
    assert (refused.returncode, "jobgate[server]" in refused.stderr) == (2, True), refused.stderr


def name_of(requirement: str) -> str:
    """The name of the package, without version, extras and markers."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def required(wheel: Path) -> tuple[str, set[str]]:
    """The version of a wheel, and what it requires without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    found = metadata.get_all("Requires-Dist", [])
    return metadata["Version"], {requirement for requirement in found if "extra ==" not in requirement}


def contents(wheel: Path) -> set[str]:
    """The files of a wheel without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def licenses(distribution: Path, scratch: Path) -> list[bytes]:
    """The license files of a wheel or of a source distribution."""
    unpacked = scratch / distribution.name
    shutil.unpack_archive(distribution, unpacked, "zip" if distribution.suffix == ".whl" else "gztar")
    return [path.read_bytes() for path in unpacked.rglob("LICENSE")]


def modules(*packages: str) -> set[str]:
    """The modules of packages in the checkout, without those that an installation from it has left in `build`."""
    found = (path.relative_to(ROOT) for package in packages for path in (ROOT / package).rglob("*.py"))
    return {path.as_posix() for path in found if "build" not in path.parts}


def test_each_wheel_has_its_packages_and_requires_those_of_its_project(built: Path, tmp_path: Path) -> None:
    of_checkout = wheels(built)
    target = tmp_path / "published"
    target.mkdir()
    distributions = [build_distributions(target, built / "source" / project) for project in PROJECTS]
    for distribution in (path for pair in distributions for path in pair):
        assert licenses(distribution, tmp_path / "unpacked") == [(ROOT / "LICENSE").read_bytes()], distribution
    published = [wheel for _, wheel in distributions]
    assert [path.name for path in published] == [path.name for path in of_checkout]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for client, server in (of_checkout, published):
        (version, of_client), (version_of_server, of_server) = required(client), required(server)
        assert version == version_of_server
        assert f"jobgate=={version}" in of_server
        assert {name_of(each) for each in of_server} == {name_of(each) for each in project["dependencies"]}
        assert {name_of(each) for each in of_client} == CLIENT_REQUIREMENTS
        assert contents(client) == {*modules("jobgate"), "jobgate/py.typed"}
        names = contents(server)
        assert {name.partition("/")[0] for name in names} == SERVER_PACKAGES
        assert names >= modules(*SERVER_PACKAGES)
        assert "app/former.py" not in names
        assert "app/bundled/examples/generic-job/flaky.yaml" in names
        assert "app/bundled/migrations/env.py" in names
        page = {"app/bundled/dashboard/built/index.html", "app/bundled/dashboard/built/notices.txt"}
        assert page <= names or not page & names


def test_the_client_has_the_extras_of_the_server() -> None:
    client, server = (tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"] for project in PROJECTS)
    of_server = f"=={server['version']}"
    assert client["optional-dependencies"] == {
        "server": [f"jobgate-server{of_server}"],
        **{extra: [f"jobgate-server[{extra}]{of_server}"] for extra in server["optional-dependencies"]},
    }


@pytest.mark.timeout(INSTALL_SECONDS + 400)
def test_the_wheel_contains_the_runtime_server_and_no_juicefs(installed: Path, tmp_path: Path) -> None:
    """JuiceFS has a different licence, so operators of a cache install it."""
    found = run(installed.parent / "python", "-c", "import juicefs", cwd=tmp_path)
    assert "No module named 'juicefs'" in found.stderr
    source = f"--source=file://{tmp_path}/"
    allowed = f"--allowed-directories={tmp_path}"
    ran = subprocess.run(
        [installed, "cache-runtime", "sync", source, allowed, "--destination=file:///nowhere/"],
        cwd=tmp_path,
        env=clean(tmp_path, PATH=str(installed.parent)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, "there is no juicefs program" in ran.stderr) == (1, True), ran.stderr


@pytest.mark.timeout(INSTALL_SECONDS + 400)
def test_the_wheel_alone_runs_the_demo(installed: Path, tmp_path: Path) -> None:
    """The wheel contains the examples, the embedded cluster and the embedded database."""
    ran = subprocess.run(
        [installed, "demo", "--exit", "--port", "0", "--data-dir", str(tmp_path / "state")],
        cwd=tmp_path,
        env=clean(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
