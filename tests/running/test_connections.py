"""What the connections of a process are opened with."""

from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.running.connections import connections
from app.settings import Settings


async def test_the_listener_has_the_timeout_of_the_settings(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    async def refused(_: str, **options: Any) -> None:
        given.update(options)
        raise LookupError

    no_cluster = str(tmp_path / "none")
    settings = Settings(database_url=database_url, role="api", kubeconfig=no_cluster, database_timeout=7)
    async with connections(settings) as opened:
        monkeypatch.setattr(asyncpg, "connect", refused)
        with pytest.raises(LookupError):
            await opened.listener.run()
    assert (given["timeout"], given["command_timeout"]) == (7, 7)
    assert given["server_settings"]["statement_timeout"] == "7000"
