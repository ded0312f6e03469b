"""The gateway process under attack, and the client that must keep receiving answers."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.gateways.process import GatewayProcess, gateway_process
from tests.support.machine.raw_http import PATIENCE, Connection
from tests.support.waiting import until

DESCRIPTORS = 256
HEADER_SECONDS = 2.0
BODY_SECONDS = 3.0
SEND_SECONDS = 3.0
LOG_BYTES = 64 * 1024  # the most that an attack may log
LIMITS = {
    "JOBGATE_ROLE": "api",
    "JOBGATE_HEADER_TIMEOUT": str(HEADER_SECONDS),
    "JOBGATE_BODY_TIMEOUT": str(BODY_SECONDS),
    "JOBGATE_SEND_TIMEOUT": str(SEND_SECONDS),
    "JOBGATE_LOG_FORMAT": "json",
    # Its lines are one for each request, by design. The tests bound what jobgate logs about attacks.
    "JOBGATE_ACCESS_LOG": "off",
}


@dataclass
class Victim:
    """The gateway process."""

    process: GatewayProcess
    address: tuple[str, int]
    _cpu: float = float("-inf")

    async def connect(self, source: str | None = None) -> Connection:
        return await Connection.open(self.address, source=source)

    def cpu_seconds(self) -> float:
        """The CPU time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))

    def reset_peak(self) -> None:
        """Begin to measure the peak again."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def is_idle(self) -> bool:
        """Return whether the process has used hardly any CPU time since the last call."""
        before, self._cpu = self._cpu, self.cpu_seconds()
        return self._cpu - before < 0.02

    def log_bytes(self) -> int:
        return self.process.log.stat().st_size

    def log_since(self, size: int) -> bytes:
        return self.process.log.read_bytes()[size:]

    @asynccontextmanager
    async def polled(self, name: str, prove: Callable[[str], None]) -> AsyncIterator["Bystander"]:
        """Poll the gateway during the block, which attacks it, and yield the report of the polling client."""
        bystander = Bystander(self)
        cpu, log, began = self.cpu_seconds(), self.log_bytes(), time.monotonic()
        async with asyncio.TaskGroup() as group:
            polling = group.create_task(bystander.poll())
            await bystander.answered(3)
            yield bystander
            await bystander.answered(3)
            polling.cancel()
        seconds = time.monotonic() - began
        prove(
            f"attack: {name}: {'; '.join(bystander.notes) or 'done'}; {seconds:.1f} s, gateway CPU "
            f"{self.cpu_seconds() - cpu:.1f} s, peak {self.peak_bytes() >> 20} MiB, log {self.log_bytes() - log} B; "
            f"bystander: {len(bystander.seconds)} answers, median {bystander.median * 1000:.1f} ms, "
            f"slowest {max(bystander.seconds, default=0.0) * 1000:.0f} ms, failed {len(bystander.failures)}"
        )
        assert bystander.failures == []
        assert self.log_bytes() - log < LOG_BYTES, self.process.log.read_text()[:4000]


@dataclass
class Bystander:
    """A client that opens a connection for each poll, as scripts do."""

    victim: Victim
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def median(self) -> float:
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else float("inf")

    async def poll(self) -> None:
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(PATIENCE), await self.victim.connect() as connection:
                    await connection.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    status, _ = await connection.answer()
            except (OSError, TimeoutError) as error:
                self.failures.append(repr(error))
            else:
                if status == 200:
                    self.seconds.append(time.monotonic() - began)
                else:
                    self.failures.append(f"status {status}")
            await asyncio.sleep(0.02)

    async def answered(self, more: int) -> None:
        """Wait for this many more answers, or for a failure."""
        wanted = len(self.seconds) + more
        await until(lambda: len(self.seconds) >= wanted or self.failures, what=f"{more} answers", within=PATIENCE)


@asynccontextmanager
async def running_victim(
    database_url: str,
    directory: Path,
    *,
    descriptors: int = DESCRIPTORS,
    kubeconfig: Path | None = None,
    **environment: str,
) -> AsyncIterator[Victim]:
    kubeconfig = kubeconfig or directory / "no-kubeconfig"
    async with gateway_process(database_url, kubeconfig, directory / "gateway", **(LIMITS | environment)) as process:
        process.descriptors = descriptors
        parts = urlsplit(await process.start())
        assert parts.hostname is not None
        assert parts.port is not None
        yield Victim(process, (parts.hostname, parts.port))
