"""`make test-cluster`: runs the suites that need a cluster on a real control plane.

It uses the first of these control planes that is available:

    JOBGATE_TEST_KUBECONFIG=<file>        that cluster, as an admin who can grant rights
    ../shared/k8s/controlplane exists     a new control plane on free ports, which is deleted afterwards
    neither                               a message, and exit status 0

K8S_VERSION selects the version of the new control plane, GANG=1 turns on its gang scheduling, and KUEUE selects the
version of Kueue (../shared/k8s/kueue), which runs for the suites that need it. On a given cluster, these skip
themselves unless it serves Kueue. Arguments that name files or directories of tests restrict the run to these.
`--quick` leaves out the suites that run one test at a time for minutes, and the crash tests beside the kills of
jobgate, which `make test` runs on the embedded cluster. All other options are those of pytest.

The gateway authenticates as the user `gateway`, which has only the rights of deploy/. Its kubeconfig is that of
JOBGATE_TEST_GATEWAY_KUBECONFIG, or gateway.kubeconfig beside that of the admin.
"""

import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.deploy import chart, rights
from tests.support.clusters.kube import Cluster, connect
from tests.support.clusters.nodes import GIVEN_NODE, running_node

ROOT = Path(__file__).parents[2]
CONTROL_PLANE = ROOT.parent / "shared" / "k8s" / "controlplane"
KUEUE = CONTROL_PLANE.with_name("kueue")
KUBECONFIG = "JOBGATE_TEST_KUBECONFIG"
GATEWAY_KUBECONFIG = "JOBGATE_TEST_GATEWAY_KUBECONFIG"
PORTS = range(20_000, 32_000)
KUEUE_DEFAULT = "0.19"  # that of the program
CONTROL_PLANE_SECONDS = 120.0
# Short periods, because tests wait for lost nodes (a grace period of 40 s and checks every 5 s by default) and for
# volumes that are bound (every 15 s).
CONTROLLER_FLAGS = "--node-monitor-grace-period=15s --node-monitor-period=1s --pvclaimbinder-sync-period=1s"
# kubectl waits for the conditions of a new CRD, and fails if it has no status yet.
NO_CONDITIONS = "conditions accessor error"
POD_NETWORK = "198.18.0.0/15"  # of node agents that can add a route
# Tests of `jobgate dev` with its own cluster.
EMBEDDED_ONLY = (
    "tests/e2e/test_dev.py::test_state_survives_a_restart_and_no_process_is_left",
    "tests/e2e/test_dev.py::test_the_children_end_by_themselves_after_a_sigkill",
)
FREEZES = "tests/crash/test_freezes.py"
KILLS = "tests/crash/test_kills.py"
SLOW = ("tests/crash/test_soak.py", "tests/crash/test_rolling_upgrade.py")
WITH_KUEUE = tuple(f"tests/conformance/test_kueue{name}.py" for name in ("", "_cohorts", "_objects", "_preemption"))
QUEUES = ("tests/behaviour/queues", "tests/crash/test_queues.py")
KUEUE_OUTAGES = tuple(f"tests/crash/test_kueue_{name}.py" for name in ("outages", "replaced"))
STRICT_KUEUE = ROOT / "tests/behaviour/queues/strict_kueue.yaml"
WITH_STRICT_KUEUE = tuple(f"tests/behaviour/queues/test_{name}.py" for name in ("strict_kueue", "lives"))
# Their gateways have no cluster, or their tests only read files, so a real control plane changes nothing.
WITHOUT_CLUSTER = (
    "tests/crash/test_rolling_restart.py",
    "tests/crash/test_workers.py",
    "tests/deploy/test_chart.py",
    "tests/deploy/test_chart_files.py",
    "tests/deploy/test_compose.py",
    "tests/deploy/test_metrics_ports.py",
    "tests/deploy/test_monitoring.py",
    "tests/deploy/test_shutdown.py",
)
GANG_VERSIONS = ("v1beta1", "v1alpha2")  # of the API of Kubernetes' own PodGroups
_QUICK = "--quick"
NOTHING_RAN = 5  # pytest's status when all tests were deselected


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests for one run of pytest, in `workers` parallel processes. `only` is an expression for its option -k."""

    paths: tuple[str, ...]
    workers: int
    shared_node: bool
    left_out: tuple[str, ...] = ()
    only: str = ""
    slow: bool = False  # run the tests that `make test` leaves out because of their duration
    is_quick: bool = True
    kueue: bool = False  # Kueue runs, whose webhooks concern all pods and fail without it
    kueue_config: Path | None = None  # additions to its configuration


SUITES = (
    # Its tests stop the heartbeats of nodes, so no other suite may run at the same time.
    Suite(paths=("tests/conformance", "tests/k8s/test_live.py"), workers=3, shared_node=False, left_out=WITH_KUEUE),
    # The jobs of a process can run on any node, so all processes share one node that outlives them.
    Suite(paths=("tests/e2e",), workers=3, shared_node=True, left_out=EMBEDDED_ONLY),
    Suite(paths=("tests/behaviour",), workers=4, shared_node=True, left_out=QUEUES),
    # These use leases of 3 s and count rights exactly, so few tests may run at the same time.
    Suite(paths=(KILLS, "tests/deploy"), workers=3, shared_node=True, left_out=WITHOUT_CLUSTER),
    Suite(
        paths=("tests/crash",),
        workers=3,
        shared_node=True,
        left_out=(KILLS, FREEZES, *KUEUE_OUTAGES, *QUEUES, *WITHOUT_CLUSTER),
        is_quick=False,
    ),
    # The other parts that freeze are not the cluster's. A test that stops the API server runs alone.
    Suite(paths=(FREEZES,), workers=1, shared_node=True, only="api_server or network_to_cluster", is_quick=False),
    # One compares memory and descriptors over a minute of load, the other runs two versions.
    Suite(paths=SLOW, workers=1, shared_node=True, slow=True, is_quick=False),
    # The last ones, because the API of Kueue remains when its manager has stopped.
    Suite(paths=WITH_KUEUE, workers=3, shared_node=False, kueue=True),
    Suite(paths=QUEUES, workers=2, shared_node=True, left_out=WITH_STRICT_KUEUE[:1], kueue=True),
    # Without Kueue, other tests could not create pods.
    Suite(paths=KUEUE_OUTAGES, workers=1, shared_node=True, kueue=True, is_quick=False),
    Suite(paths=WITH_STRICT_KUEUE, workers=3, shared_node=True, kueue=True, kueue_config=STRICT_KUEUE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """The kubeconfigs of a control plane. One that this process has started has an environment for its tools."""

    admin: Path
    gateway: Path | None
    environment: dict[str, str] | None = None


class Termination:
    """Ends this process on SIGTERM and SIGINT while tests run. A signal at another time waits for that.

    So none interrupts the start or the end of a control plane, which would leave its processes behind.
    """

    def __init__(self) -> None:
        self._received = 0
        self._tests_run = False

    def handle(self, number: int, _: object) -> None:
        self._received = self._received or number
        if self._tests_run:
            self._tests_run = False
            self.exit_if_received()

    def exit_if_received(self) -> None:
        if self._received:
            sys.exit(128 + self._received)

    @contextmanager
    def running_tests(self) -> Iterator[None]:
        self.exit_if_received()
        self._tests_run = True
        try:
            yield
        finally:
            self._tests_run = False


TERMINATION = Termination()


class NotRunnable(Exception):  # noqa: N818 - a message for the person who started it
    """The suites cannot run. The message contains the cause."""


@contextmanager
def own_control_plane(directory: Path) -> Iterator[ControlPlane]:
    """Run a new control plane during the block, and delete it afterwards."""
    port, etcd_port, kueue_port = _free_ports(3, 2, 3)
    state = directory / "k8s"
    environment = os.environ | {
        "K8S_DIR": str(state),
        "K8S_PORT": str(port),
        "K8S_ETCD_PORT": str(etcd_port),
        "KUEUE_PORT": str(kueue_port),
    }
    # The pod proxy of the API server uses the HTTP proxy of the environment for addresses that are not loopback.
    environment["NO_PROXY"] = environment["no_proxy"] = ",".join(
        filter(None, (os.environ.get("NO_PROXY"), POD_NETWORK))
    )
    environment["KCM_FLAGS"] = f"{CONTROLLER_FLAGS} {os.environ.get('KCM_FLAGS', '')}".strip()
    try:
        _start(CONTROL_PLANE, environment)
        yield ControlPlane(
            admin=state / "admin.kubeconfig", gateway=state / "gateway.kubeconfig", environment=environment
        )
    finally:
        _run(CONTROL_PLANE, "reset", environment)


def _start(program: Path, environment: dict[str, str], *, again_if: str | None = None) -> None:
    """Run the program's command `start`, up to three times while its error contains `again_if`."""
    for tries_left in (2, 1, 0):
        ran = _run(program, "start", environment)
        if not ran.returncode:
            return
        error = (ran.stderr or ran.stdout).strip()
        if not tries_left or again_if is None or again_if not in error:
            raise NotRunnable(f"{program.name} does not start: {error}")


def _run(program: Path, command: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command of the program. Signals to the group of this process do not reach it."""
    return subprocess.run(
        [str(program), command],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=CONTROL_PLANE_SECONDS,
        start_new_session=True,
    )


@contextmanager
def running_kueue(found: ControlPlane, config: Path | None) -> Iterator[None]:
    """Run Kueue during the block, on a control plane that this process has started."""
    if found.environment is None or not KUEUE.exists():
        print("test-cluster: Kueue is not started: its tests need a cluster that serves it", flush=True)
        yield
        return
    try:
        given = {} if config is None else {"KUEUE_CONFIG": str(config)}
        _start(KUEUE, found.environment | given, again_if=NO_CONDITIONS)
        print(f"test-cluster: Kueue {os.environ.get('KUEUE') or KUEUE_DEFAULT}", flush=True)
        yield
    finally:
        _run(KUEUE, "stop", found.environment)


def _free_ports(*lengths: int) -> list[int]:
    """Return the first port of a free range of each of the lengths.

    They are below the ports that Linux gives to outgoing connections: the API server opens hundreds of these before
    the other parts listen.
    """
    found: list[int] = []
    for length in lengths:
        start = random.choice(PORTS)
        while not _are_free(range(start, start + length)) or any(abs(start - other) < 8 for other in found):
            start = random.choice(PORTS)
        found.append(start)
    return found


def _are_free(ports: range) -> bool:
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


@contextmanager
def control_plane(directory: Path) -> Iterator[ControlPlane | None]:
    given = os.environ.get(KUBECONFIG)
    if given:
        if not Path(given).is_file():
            raise NotRunnable(f"{KUBECONFIG} names {given}, which does not exist")
        gateway = Path(os.environ.get(GATEWAY_KUBECONFIG) or Path(given).with_name("gateway.kubeconfig")).absolute()
        yield ControlPlane(admin=Path(given).absolute(), gateway=gateway if gateway.exists() else None)
    elif CONTROL_PLANE.exists():
        with own_control_plane(directory) as started:
            yield started
    else:
        yield None


def run_suites(found: ControlPlane, directory: Path, arguments: Sequence[str]) -> int:
    asyncio.run(_print_version(found.admin))
    environment = os.environ | {KUBECONFIG: str(found.admin)}
    if found.gateway is not None:
        asyncio.run(_grant(found.admin))
        environment[GATEWAY_KUBECONFIG] = str(found.gateway)
    else:
        print(f"test-cluster: {GATEWAY_KUBECONFIG} is not set, so the gateway authenticates as the admin", flush=True)
    if chart.helm() is None:
        print(f"test-cluster: {chart.NO_HELM}", flush=True)
    suites, options = selected_suites(arguments)
    started = time.monotonic()
    failures = 0
    for number, suite in enumerate(suites):
        failures += not _passes(suite, found, directory / f"node-{number}", environment, options)
    print(f"test-cluster: all suites took {time.monotonic() - started:.0f} s", flush=True)
    return 1 if failures else 0


def selected_suites(arguments: Sequence[str]) -> tuple[list[Suite], list[str]]:
    """Return the suites that contain the named tests, restricted to these, and the other arguments.

    Without a named test, these are all suites, or all quick ones.
    """
    named = [argument for argument in arguments if _names_tests(argument)]
    options = [argument for argument in arguments if argument not in (*named, _QUICK)]
    suites = [suite for suite in SUITES if suite.is_quick or _QUICK not in arguments]
    if not named:
        return suites, options
    restricted = [replace(suite, paths=_common_paths(suite, named)) for suite in suites]
    return [suite for suite in restricted if suite.paths], options


def _names_tests(argument: str) -> bool:
    file = argument.partition("::")[0]
    return Path(file).parts[:1] == ("tests",) and (ROOT / file).exists()


def _common_paths(suite: Suite, named: Sequence[str]) -> tuple[str, ...]:
    """The named tests within the suite, and the paths of the suite within a named directory."""
    inside = [name for name in named if _is_within(name, suite.paths) and not _is_within(name, suite.left_out)]
    return (*inside, *(path for path in suite.paths if _is_within(path, named) and path not in inside))


def _is_within(name: str, directories: Sequence[str]) -> bool:
    return any(Path(name.partition("::")[0]).is_relative_to(directory) for directory in directories)


async def _print_version(admin: Path) -> None:
    async with connect(Cluster.read(admin, real=True)) as api:
        version = (await api.get("/version")).ok()
        gangs = [await api.get(f"/apis/scheduling.k8s.io/{name}") for name in GANG_VERSIONS]
    print(f"test-cluster: Kubernetes {version['gitVersion']}", flush=True)
    if all(answer.status != 200 for answer in gangs):
        print("test-cluster: its own gang scheduling is not tested, because it is off: GANG=1 turns it on", flush=True)


async def _grant(admin: Path) -> None:
    """Grant the user `gateway` the rights of deploy/, including those for SampleSets and queues, and no others."""
    async with connect(Cluster.read(admin, real=True)) as api:
        await rights.apply(api, *map(rights.documents, (rights.RBAC, rights.SAMPLE_SETS, rights.QUEUES)))


def _passes(
    suite: Suite, found: ControlPlane, directory: Path, environment: dict[str, str], arguments: Sequence[str]
) -> bool:
    name = " ".join(suite.paths)
    print(f"test-cluster: {name}", flush=True)
    started = time.monotonic()
    with ExitStack() as stack:
        if suite.kueue:
            stack.enter_context(running_kueue(found, suite.kueue_config))
        if suite.shared_node:
            node = stack.enter_context(running_node(Cluster.read(found.admin, real=True), directory))
            environment = environment | {GIVEN_NODE: node}
        workers = ("-n", str(suite.workers), "--dist", "worksteal") if suite.workers > 1 else ()
        left_out = [f"--deselect={path}" for path in suite.left_out]
        only = ("-k", suite.only) if suite.only else ()
        slow = ("-m", "slow") if suite.slow else ()
        command = [sys.executable, "-m", "pytest", *workers, *suite.paths, *left_out, *only, *slow, *arguments]
        with TERMINATION.running_tests():
            status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(f"test-cluster: {name} took {time.monotonic() - started:.0f} s", flush=True)
    return status in (0, NOTHING_RAN)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, TERMINATION.handle)
    directory = Path(tempfile.mkdtemp(prefix="jobgate-cluster-"))
    try:
        with control_plane(directory) as found:
            if found is None:
                print(f"test-cluster: skipped, there is no control plane: set {KUBECONFIG} to an admin's kubeconfig")
                return 0
            return run_suites(found, directory, sys.argv[1:])
    except NotRunnable as error:
        print(f"test-cluster: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
