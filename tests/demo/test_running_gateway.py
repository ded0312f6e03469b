"""`jobgate demo --server` plays against a running gateway until its stories end or a signal stops it."""

import asyncio
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from app.bundled import bundled_directory
from app.demo.player import DemoError, Player
from app.demo.run import INTERRUPTED, play_against
from app.demo.stories import QUEUED, STORIES
from jobgate.cli.command import app
from tests.support.gateways.gateway import running_gateway


async def test_a_signal_ends_the_demo_while_the_gateway_does_not_answer() -> None:
    stop = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        async with asyncio.TaskGroup() as group:
            playing = group.create_task(play_against(f"http://127.0.0.1:{listener.getsockname()[1]}", None, stop))
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            stop.set()
        connection.close()
    assert playing.result() == INTERRUPTED


async def test_an_example_that_is_still_live_is_one_line_with_the_command_that_ends_it(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client: Any = get_command(app)
    async with running_gateway(database_url) as gateway:
        for story in STORIES:
            manifest = bundled_directory("examples").joinpath(story.file).read_bytes()
            headers = {"Content-Type": "application/yaml"}
            answer = await gateway.client.post("/api/v1/namespaces/default/jobs", content=manifest, headers=headers)
            assert answer.status_code == 201, answer.text
        assert await play_against(gateway.url, None, asyncio.Event()) == 1
        failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("!! ")]
        assert sorted(line.split()[1] for line in failed) == sorted(f"{story.file}:" for story in STORIES)
        for line in failed:
            assert "is still live" in line
            assert "{" not in line, "no JSON"
            program, name, *arguments = shlex.split(line.split("`")[1])
            assert Path(program).name == "jobgate"
            parsed = client.commands[name].make_context(name, arguments)
            (job,) = parsed.params["jobs"]
            assert (await gateway.client.get(f"/api/v1/namespaces/default/jobs/{job}")).status_code == 200
            assert parsed.params["server"] == gateway.url


async def test_a_story_does_not_wait_for_a_job_that_is_not_submitted(database_url: str) -> None:
    manifest = bundled_directory("examples").joinpath(QUEUED[0].file).read_bytes()
    async with running_gateway(database_url) as gateway:
        headers = {"Content-Type": "application/yaml"}
        answer = await gateway.client.post("/api/v1/namespaces/default/jobs", content=manifest, headers=headers)
        assert answer.status_code == 201, answer.text
        player = Player(gateway.client, "default", lambda _name, _line: None)
        first, *others = await asyncio.gather(*(player.play(story) for story in QUEUED), return_exceptions=True)
    assert "the job experiment is still live" in str(first)
    assert [str(error) for error in others] == [
        "it begins when experiment is Running, which did not happen",
        "it begins when follow-up is WaitingForQuota, which did not happen",
    ]
    assert all(isinstance(error, DemoError) for error in others)
