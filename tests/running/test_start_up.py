"""What a start of the server does not do: search for garbage, and import what it may not need."""

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.running.start_up import begin_start_up, end_start_up

ROOT = Path(__file__).parents[2]

# By module, what needs it. Each takes at least a hundredth of the time of a start.
NOT_IMPORTED = {
    "alembic": "migrations, which the commands migrate, dev and demo run",
    "app.running.controlling": "the controller, which is one process",
    "app.db.postgres.migrations": "as alembic",
    "app.running.dev": "the commands dev and demo",
    "app.loops.autoscaling.autoscaler": "the controller",
    "app.loops.cache.reconciler": "the controller",
    "app.loops.jobs.reconciler": "the controller",
    "app.services.oidc.sign_in": "an issuer",
    "cryptography": "an issuer",
    "httpx2": "clients",
    "jwt": "an issuer",
    "kubernetes_asyncio": "a cluster",
    "opentelemetry.sdk": "the export of traces",
    "sqlalchemy.ext.asyncio": "migrations",
    "sqlalchemy.orm": "nothing",
}


@pytest.fixture
def collector() -> Iterator[None]:
    """Restore the garbage collector, of which a process has only one."""
    before = gc.get_threshold()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        gc.enable()


def output_of(program: str) -> list[str]:
    """Run a Python program, and return the words that it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=180, check=True
    )
    return ran.stdout.split()


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The modules of a process that imports what `serve` imports, for any number of workers."""
    return set(output_of("import sys, app.cli, app.running.supervised; print(*sys.modules)"))


@pytest.mark.parametrize("module", NOT_IMPORTED)
def test_a_start_does_not_import_what_it_may_not_need(imported: set[str], module: str) -> None:
    assert {"app.running.bootstrap", "app.running.application", "app.running.connections"} <= imported, (
        "the program imports the server"
    )
    assert module not in imported, f"it is for {NOT_IMPORTED[module]}"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"role": "api"}, []),
        ({"role": "all"}, ["app.running.controlling"]),
        ({"role": "api", "oidc_issuer": "https://id.example"}, ["app.services.oidc.sign_in"]),
    ],
)
def test_a_supervisor_imports_what_its_processes_need(settings: dict[str, str], expected: list[str]) -> None:
    parts = ["app.running.controlling", "app.services.oidc.sign_in"]
    given = {"oidc_client_id": "jobgate", "oidc_grants": "a=viewer:lab"} | settings
    program = f"bootstrap.import_parts(Settings(**{given})); print(*(part for part in {parts} if part in sys.modules))"
    modules = "import sys; from app.running import bootstrap; from app.settings import Settings"
    assert output_of(f"{modules}; {program}") == expected


@pytest.mark.usefixtures("collector")
def test_the_objects_of_a_start_are_never_searched_for_garbage() -> None:
    begin_start_up()
    assert not gc.isenabled()
    kept: list[list[int]] = [[] for _ in range(1000)]
    end_start_up()
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(kept)
    assert all(one is not kept for one in gc.get_objects())


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library than glibc")
def test_large_blocks_return_to_the_system_when_they_are_freed() -> None:
    """Also after the first one, and if something small was made after each."""
    (grown,) = output_of(
        "from pathlib import Path\n"
        "from app.running.start_up import end_start_up\n"
        "def resident(): return int(Path('/proc/self/statm').read_text().split()[1]) // 256\n"
        "end_start_up()\n"
        "bytes(8 * 2**20)\n"
        "before = resident()\n"
        "made = [(bytes([1]) * 2**20, bytes(600)) for _ in range(100)]\n"
        "made = [small for _, small in made]\n"
        "print(resident() - before)\n"
    )
    assert int(grown) < 20, "MiB of 100"
