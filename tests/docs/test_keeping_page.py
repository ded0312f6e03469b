"""The commands of docs/keeping.md do what the page says."""

import asyncio
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.domain.retention import Retention
from app.domain.vocabulary import JobPhase
from tests.db.factories import NOW
from tests.support.documents.shell import run_script, shell_environment
from tests.support.gateways.gateway import Gateway, jobs_path, running_gateway

PAGE = Path(__file__).parents[2] / "docs" / "keeping.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 240

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("bash")),
    reason="they need curl and bash: apt-get install curl bash",
)


def command(beginning: str) -> str:
    (found,) = (block for block in BLOCK.findall(PAGE.read_text()) if block.startswith(beginning))
    return str(found)


async def stored(gateway: Gateway, names: Sequence[str], namespace: str) -> None:
    for name in names:
        uid = (await gateway.submit(name, namespace=namespace))["uid"]
        ended = {"phase": JobPhase.FAILED, "finished_at": NOW, "quiet": True, "gone_at": NOW}
        await gateway.conclude(uid, ended)


async def ran(script: str, gateway: Gateway, home: Path, **environment: str) -> str:
    given = shell_environment(gateway.url, home) | {"JOBGATE_TOKEN": "none", **environment}
    done = await asyncio.to_thread(run_script, script, given, cwd=home, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def names(gateway: Gateway, namespace: str) -> set[str]:
    page: Any = (await gateway.client.get(f"/api/v1/jobs?namespace={namespace}")).json()
    return {job["name"] for job in page["items"]}


async def test_a_job_is_pinned_and_others_are_purged(database_url: str, tmp_path: Path) -> None:
    purging = command("jobgate purge").replace(" --dry-run", "")
    async with running_gateway(database_url) as gateway:
        await stored(gateway, ["train", "other"], "team-a")
        await stored(gateway, ["one", "two"], "scratch")
        await ran(command("curl"), gateway, tmp_path)
        pinned = await gateway.client.get(jobs_path("team-a", "train"))
        assert pinned.json()["annotations"] == {"jobgate.dev/keep": "true"}
        url = {"JOBGATE_DATABASE_URL": database_url}
        counted = await ran(command("jobgate purge"), gateway, tmp_path, **url)
        assert "  scratch  Failed  2\n  2 in all\n" in counted
        assert await names(gateway, "scratch") == {"one", "two"}
        await ran(purging, gateway, tmp_path, **url)
        assert (await names(gateway, "scratch"), await names(gateway, "team-a")) == (set(), {"train", "other"})
        await ran(purging.replace("scratch", "team-a"), gateway, tmp_path, **url)
        assert await names(gateway, "team-a") == {"train"}


def test_the_setting_is_valid() -> None:
    value = command("export JOBGATE_KEEP_JOBS").strip().partition("=")[2]
    kept = {name: str(duration) for name, duration in Retention.parse(value).exceptions.items()}
    assert kept == {"team-a": "365 days, 0:00:00", "scratch": "7 days, 0:00:00", "audited": "None"}
