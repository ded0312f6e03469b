"""The runtime server as a separate process, with an HTTP client."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
START_SECONDS = 120.0  # a loaded machine takes long to import the program
TOKEN = "a-secret-of-the-set"
# Sources of tests are on this machine.
ALLOWED = {"allowed-hosts": ["127.0.0.0/8"], "allowed-directories": ["/"]}
QUICK_WARMUP = "30,60,30,0.05,0.2,5"  # silence of five seconds: a machine under load stops that long for nobody


class CacheServer:
    """One runtime server. It keeps its directory and its mark when it is killed and started again."""

    def __init__(self, home: Path, arguments: Sequence[str], *, index: int = 0) -> None:
        self.home = home
        self.mark = f"{home.name}-{uuid4().hex}"
        home.mkdir(parents=True, exist_ok=True)
        (home / "token").write_text(TOKEN)
        self._arguments = arguments
        self._index = index
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [
            *(sys.executable, "-m", "cacheserver", "server", "--driver=juicefs", "--development"),
            *(f"--token-file={self.home / 'token'}", f"--serverDir={self.home / 'runtime'}"),
            *("--serverHost=127.0.0.1", "--serverPort=0", f"--warmup-times={QUICK_WARMUP}"),
            *self._arguments,
        ]
        environment = {**os.environ, "HOSTNAME": f"set-runtime-{self._index}", "TEST_MARK": self.mark}
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        assert line.startswith("runtime server is ready at "), self.log()
        self.url = line.split()[-1]

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return (self.home / "server.log").read_text()

    def kill(self) -> None:
        """Kill the server and its children with SIGKILL, as a failing machine does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stop(self) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(60)
        finally:
            self.kill()

    async def ask(self, method: str, path: str, *, token: str | None = TOKEN, **given: Any) -> httpx2.Response:
        headers = {**given.pop("headers", {}), **({"x-jobgate-token": token} if token else {})}
        async with httpx2.AsyncClient(base_url=self.url, timeout=60, trust_env=False) as http:
            return await http.request(method, path, headers=headers, **given)

    async def post(self, kind: str, options: dict[str, Any], name: str | None = None) -> str:
        name = name or str(uuid4())
        body = json.dumps({**(ALLOWED if kind == "sync" else {}), **options}).encode()
        answer = await self.ask("POST", f"/upload/{kind}Options", headers={"filename": name}, content=body)
        assert answer.status_code == 200, answer.text
        return name

    async def terminate(self) -> None:
        answer = await self.ask("POST", "/upload/clearOptions?terminate=true", headers={"filename": "terminate"})
        assert answer.status_code == 200, answer.text

    async def result(self, kind: str, name: str) -> dict[str, str] | None:
        """Return the status and the message of a job."""
        answer = await self.ask("GET", f"/{kind}Result/{name}")
        if answer.status_code != 200:
            return None
        return {key: value for key, value in answer.json().items() if key != "progress"}

    async def progress(self, kind: str, name: str) -> dict[str, int] | None:
        """Return the known figures of the progress of a job, or None if it reports none."""
        progress = (await self.ask("GET", f"/{kind}Result/{name}")).json().get("progress")
        return progress and {key: value for key, value in progress.items() if value is not None}

    async def until(self, kind: str, name: str, *statuses: str, within: float = 120) -> dict[str, str]:
        return await until(
            lambda: self.result(kind, name),
            lambda result: result["status"] in statuses,
            what=lambda: f"the status of {kind} {name} is one of {statuses}\n{self.log()}",
            within=within,
        )

    async def ended(self, kind: str, name: str, *, within: float = 120) -> dict[str, str]:
        return await self.until(kind, name, "success", "fail", within=within)


@contextmanager
def cache_server(home: Path, *arguments: str, index: int = 0) -> Iterator[CacheServer]:
    server = CacheServer(home, arguments, index=index)
    server.start()
    try:
        yield server
        if server.is_running():
            assert server.stop() == 0, server.log()
    finally:
        server.kill()
