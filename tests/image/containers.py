"""Containers of the image under test, run by podman as docker-compose.yml runs them."""

import asyncio
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

IMAGE = "JOBGATE_TEST_IMAGE"
SECONDS = 280.0  # generous, because the machine may be busy
# runc and the limits suit machines with hybrid cgroups, and those that may not raise their limits. The network of the
# machine needs no set-up.
RUN = (
    *("podman", "--runtime", "runc", "run", "--network=host"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"),
)
# The rights of the containers in docker-compose.yml and deploy/, and of those in the pods of a SampleSet.
CONFINED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges")
PRIVILEGED = ("--privileged", "--user=0:0")


def image_under_test() -> str:
    if not (name := os.environ.get(IMAGE)):
        pytest.skip("no image is given: run `make test-image`")
    return name


async def podman(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run podman, or another program if the arguments begin with `podman`."""
    command = arguments if arguments[0] == "podman" else ("podman", *arguments)
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def options(environment: Mapping[str, str], volumes: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    variables = [f"--env={name}={value}" for name, value in environment.items()]
    return [*variables, *(f"--volume={volume}" for volume in volumes), *more]


async def run_once(
    image: str,
    *command: str,
    environment: Mapping[str, str] | None = None,
    volumes: Sequence[str] = (),
    more: Sequence[str] = (),
    access: Sequence[str] = CONFINED,
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the image to its end."""
    return await podman(*RUN, *access, "--rm", *options(environment or {}, volumes, more), image, *command)


class Container:
    """A container in the background."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def log(self) -> str:
        ran = await podman("logs", self.name)
        return ran.stdout + ran.stderr

    async def is_running(self) -> bool:
        return (await podman("inspect", "--format={{.State.Running}}", self.name)).stdout.strip() == "true"

    async def stop(self) -> int:
        """Send SIGTERM, wait for the end, and return the exit status. 137 means that it had to be killed."""
        stopped = await podman("stop", "--time=120", self.name)
        assert stopped.returncode == 0, stopped.stderr
        return int((await podman("inspect", "--format={{.State.ExitCode}}", self.name)).stdout)


@asynccontextmanager
async def container(
    image: str, command: Sequence[str], environment: Mapping[str, str], volumes: Sequence[str]
) -> AsyncIterator[Container]:
    """Run a command of the image in the background during the block."""
    name = f"jobgate-test-{secrets.token_hex(4)}"
    given = options(environment, volumes, ("--detach", f"--name={name}"))
    started = await podman(*RUN, *CONFINED, *given, image, *command)
    try:
        assert started.returncode == 0, started.stderr
        yield Container(name)
    finally:
        await podman("rm", "--force", "--time=0", name)
