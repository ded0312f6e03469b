"""The assignment of files to servers in a warm-up: in turn or at random."""

import asyncio
from pathlib import Path

import pytest

from cacheserver.options import WarmupRequest
from tests.cacheserver.warmup.test_warmup import Servers

FILES = 64


@pytest.mark.parametrize("strategy", ["sequence", "random"])
async def test_lines_are_assigned_in_turn_or_at_random(tmp_path: Path, strategy: str) -> None:
    names = [f"{number:02}" for number in reversed(range(FILES))]
    for name in names:
        (tmp_path / name).write_text(name)
    (tmp_path / "list").write_text("\n".join(names))
    servers = Servers(tmp_path)
    options = WarmupRequest(partitions=2, file=f"{tmp_path}/list", strategyName=strategy)  # type: ignore[arg-type]
    await asyncio.gather(*(servers.server(index, options).run() for index in range(2)))
    lines = [f"{tmp_path}/{name}" for name in names]
    first, second = servers.warmed[0], servers.warmed[1]
    assert sorted(first + second) == sorted(lines)
    assert ((first, second) == (lines[0::2], lines[1::2])) == (strategy == "sequence")
    assert min(len(first), len(second)) > FILES // 8
