"""The commands of docs/usage.md work, and its price list is accepted."""

import asyncio
import csv
import io
import re
from decimal import Decimal
from pathlib import Path

from app.domain.usage.holds import JobUse
from app.domain.vocabulary import Use
from app.settings import Settings
from tests.api.routes.test_usage import ALICE, used
from tests.support.documents.shell import run_script, shell_environment
from tests.support.gateways.gateway import running_gateway

SECONDS = 300.0  # the machine may be busy
PAGE = Path("docs/usage.md").read_text(encoding="utf-8")


async def test_the_commands_show_what_jobs_have_used(database_url: str, tmp_path: Path) -> None:
    script = "set -e\n" + "\n".join(re.findall(r"^```sh tour\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    async with running_gateway(database_url) as gateway:
        uid = (await gateway.submit("hello", "default"))["uid"]
        ended = {"cpu": {Use.REPEATED: Decimal(7_200_000_000)}}
        await gateway.conclude(uid, {"usage": JobUse(ended=ended)})
        await used(gateway, ALICE, {(0, "nvidia.com/gpu", Use.USEFUL): 8 * 3_600_000})
        environment = shell_environment(gateway.url, tmp_path)
        ran = await asyncio.to_thread(run_script, script, environment, cwd=tmp_path, timeout=SECONDS)
    assert ran.returncode == 0, ran.stderr
    of_job, *sums = ran.stdout.split("\n\n", 1)
    assert "cpu        2.00    0        2.00" in of_job
    assert "team-a" in sums[0]
    assert "vision" in sums[0], "by the label of the page"
    lines = list(csv.DictReader(io.StringIO((tmp_path / "usage.csv").read_text(encoding="utf-8"))))
    assert [(line["namespace"], line["user"], line["useful_seconds"]) for line in lines] == [
        ("team-a", "alice", "28800.000")
    ]


def test_the_price_list_is_accepted(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    prices = Settings(prices_file=str(file)).prices()
    assert prices is not None
    assert (prices.currency, prices.hourly["cpu"], prices.hourly["nvidia.com/gpu"]) == (
        "EUR", Decimal("0.031"), Decimal("2.1")
    )  # fmt: skip
