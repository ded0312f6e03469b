"""The commands of docs/exports.md work as they are written."""

import re
from pathlib import Path

from tests.exports.ended_jobs import ended_job, remove, stored
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.gateway import Gateway

PAGE = Path("docs/exports.md")


async def test_the_commands_export_and_import_jobs(gateway: Gateway, tmp_path: Path) -> None:
    uid = await ended_job(gateway)
    async with gateway.db.begin() as connection:
        await connection.execute("UPDATE jobs SET finished_at = '2026-08-15T12:00Z'")
    before = await stored(gateway.db, uid)
    section = PAGE.read_text().partition("\n## ")[0]
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    shown = []
    for line in commands.replace("/archive", str(tmp_path)).splitlines():
        program, *arguments = line.split()
        assert program == "jobgate"
        ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=gateway.db.url)
        assert ran.returncode == 0, ran.stderr
        shown.append(ran.stdout.splitlines()[-1])
        if arguments[0] == "export":
            await remove(gateway.db, uid)
    assert shown == ["the export is complete: 1 segments, 1 jobs added", "imported 1 jobs; 0 were present"]
    assert await stored(gateway.db, uid) == before
