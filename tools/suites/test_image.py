"""`make test-image`: builds the container image with Debian's tools, and tests it on a real control plane.

    --base-image NAME    an image that podman has, instead of a Debian that mmdebstrap makes
    --image NAME         test this image that podman has, instead of one built from the Dockerfile
    --keep               keep the images
    anything else        arguments of pytest

It needs root. If a tool or a control plane is missing, it prints which, and the exit status is 0.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tools.dashboard import NodeError, NotInstallableError, npm_option
from tools.suites.test_cluster import KUBECONFIG, ROOT, ControlPlane, NotRunnable, control_plane

TOOLS = ("buildah", "podman", "runc", "mmdebstrap")
IMAGE = "JOBGATE_TEST_IMAGE"  # for tests/image
RELEASE = "bookworm"  # the one that the default base image of the Dockerfile has
PACKAGES = "python3-minimal,python3-venv,ca-certificates"
BASE_NAME = "localhost/jobgate-test-base"
IMAGE_NAME = "localhost/jobgate-test"
BUILD_SECONDS = 1800.0  # for each step; a busy machine takes ten times as long as an idle one
# Without these, runc and the chroot of buildah ask for more than some machines allow.
ULIMITS = ("--ulimit", "nofile=1024:1024")
NPM_OPTIONS = ("registry", "cafile", "proxy", "https-proxy", "noproxy")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def missing() -> list[str]:
    """Return what this machine lacks, in words for the person who started the suite."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    found = [f"{', '.join(lacking)} (apt-get install {' '.join(lacking)})"] if lacking else []
    return [*found, "root"] if os.geteuid() != 0 else found


def run(*command: str) -> None:
    started = time.monotonic()
    print(f"test-image: {' '.join(command[:2])} …", flush=True)
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=BUILD_SECONDS)
    if ran.returncode:
        raise NotRunnable(f"{' '.join(command)} failed:\n{(ran.stdout + ran.stderr)[-4000:]}")
    print(f"test-image: {' '.join(command[:2])} took {time.monotonic() - started:.0f} s", flush=True)


def make_base(directory: Path) -> str:
    """Make a minimal Debian with Python, and return the name of its image."""
    archive = directory / "base.tar"
    run("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(archive))
    run("podman", "import", "--quiet", str(archive), BASE_NAME)
    archive.unlink()
    return BASE_NAME


def pip_configuration() -> str:
    """Return the configuration of this machine's pip: the build needs the same index and certificates."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    wanted = ("cert", "index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout")
    found: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        scope, _, option = key.rpartition(".")
        if scope in ("global", "install", ":env:") and option in wanted:
            found[option] = value.strip("'\"")
    return "\n".join(["[global]", *(f"{option} = {value}" for option, value in found.items())]) + "\n"


def npm_configuration() -> str:
    """Return the configuration of this machine's npm for the same reason; empty if Node is not installed."""
    try:
        return "".join(f"{option}={value}\n" for option in NPM_OPTIONS if (value := npm_option(option)))
    except (NotInstallableError, NodeError):
        return ""


def build(directory: Path, base: str) -> str:
    """Build the image from the Dockerfile, and return its name."""
    secrets = {"pip": pip_configuration(), "npm": npm_configuration()}
    for name, text in secrets.items():
        (directory / name).write_text(text, encoding="utf-8")
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    certificates = ("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro") if Path(CERTIFICATES).exists() else ()
    run(
        *("buildah", "bud", "--isolation=chroot", "--network=host", *ULIMITS, *certificates),
        *(f"--secret=id={name},src={directory / name}" for name in secrets),
        *("--build-arg", f"BASE_IMAGE={base}"),
        *("--build-arg", f"REVISION={revision.stdout.strip() or 'unknown'}", "--tag", IMAGE_NAME, "."),
    )
    return IMAGE_NAME


def run_tests(image: str, found: ControlPlane, arguments: Sequence[str]) -> int:
    environment = os.environ | {IMAGE: image, KUBECONFIG: str(found.admin)}
    command = [sys.executable, "-m", "pytest", "-m", "slow", "tests/image", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def run_suite(options: argparse.Namespace, directory: Path, arguments: Sequence[str]) -> int:
    with ExitStack() as stack:
        found = stack.enter_context(control_plane(directory))
        if found is None:
            print(f"test-image: skipped, there is no control plane: set {KUBECONFIG} to an admin's kubeconfig")
            return 0
        made: list[str] = []
        if not options.keep:
            stack.callback(_remove, made)
        image = options.image
        if image is None:
            base = options.base_image
            if base is None:
                made.append(BASE_NAME)
                base = make_base(directory)
            made.append(IMAGE_NAME)
            image = build(directory, base)
        return run_tests(image, found, arguments)


def _remove(images: list[str]) -> None:
    for image in reversed(images):
        subprocess.run(["podman", "rmi", "--force", image], check=False, capture_output=True, timeout=BUILD_SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-image", description=__doc__)
    parser.add_argument("--base-image")
    parser.add_argument("--image")
    parser.add_argument("--keep", action="store_true")
    options, arguments = parser.parse_known_args()
    if lacking := missing():
        print(f"test-image: skipped, this machine lacks {' and '.join(lacking)}")
        return 0
    directory = Path(tempfile.mkdtemp(prefix="jobgate-image-"))
    try:
        return run_suite(options, directory, arguments)
    except NotRunnable as error:
        print(f"test-image: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
