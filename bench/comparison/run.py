"""The steps of a run, in order: submit with controllers running; submit and poll with controllers stopped; lag."""

import argparse
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2

from app.db.postgres.engine import Database
from app.embedded_postgres.server import EmbeddedPostgres
from app.services.reading.objects import Address
from bench.comparison import breakdown, lag, throughput
from bench.comparison.throughput import Effort
from bench.measuring import report
from bench.measuring.client import LoadClient, MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.kubernetes import CONTROLLERS, ControlPlane, Unavailable
from bench.measuring.report import Pairs

_SUBMIT_GOAL = 2.0
_FEW_CLIENTS = 16  # as many as keep two cores busy without long queues


class Bench:
    """Both sides of one run. Without a control plane, only jobgate is measured."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        directory: Path,
        client: LoadClient,
        postgres: EmbeddedPostgres,
        plane: ControlPlane | None,
    ) -> None:
        self._arguments = arguments
        self._directory = directory
        self._client = client
        self._postgres = postgres
        self._plane = plane
        self._effort = Effort(pairs=arguments.pairs, seconds=arguments.seconds)

    async def run(self) -> None:
        """Measure the selected parts, and print each table when it is complete."""
        wanted = self._arguments.only or ["running", "lag", "submit", "poll"]
        if self._plane is not None:
            for name in (throughput.SUBMITTED, throughput.POLLED, lag.NAMESPACE):
                await self._plane.namespace(name)
            await self._plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
            if "running" in wanted:
                await _attempt("submit with controllers running", self._with_controllers(self._plane))
            await self._plane.stop_controllers()
        if "submit" in wanted or "poll" in wanted:
            await _attempt("submit and poll", self._throughput(wanted))
        if self._plane is not None and "lag" in wanted:
            await _attempt("lag", self._lag(self._plane))

    @asynccontextmanager
    async def _serving(self, url: str, role: str) -> AsyncIterator[Target]:
        kubeconfig = self._plane.kubeconfig if self._plane else None
        token = await new_token(url)
        async with gateway(
            url,
            self._directory,
            self._postgres,
            role=role,
            kubeconfig=kubeconfig,
            token=token,
            workers=self._arguments.workers,
        ) as target:
            yield target

    async def _with_controllers(self, plane: ControlPlane) -> None:
        """Submit to each side while its controllers run, which create pods in the same cluster."""
        url = await new_database(self._postgres, "running")
        once = Effort(pairs=1, seconds=self._effort.seconds)
        # kube-apiserver comes first, because its controllers are stopped before jobgate is measured.
        theirs = plane.target(*CONTROLLERS)
        mine, other = throughput.submissions(Target(name="", port=0, tls=False, token="", pids={}), theirs)
        assert other is not None
        there = await self._client.run(theirs, [other], clients=_FEW_CLIENTS, seconds=once.seconds, expect=201)
        await plane.stop_controllers()
        async with AsyncExitStack() as stack:
            ours = await stack.enter_async_context(self._serving(url, "api"))
            controller = await stack.enter_async_context(self._serving(url, "controller"))
            pids = {**ours.pids, "controller": controller.pids["jobgate"], **plane.target().pids}
            ours = Target(name=ours.name, port=ours.port, tls=False, token=ours.token, pids=pids)
            mine, _ = throughput.submissions(ours, None)
            here = await self._client.run(ours, [mine], clients=_FEW_CLIENTS, seconds=once.seconds, expect=201)
        pair = Pairs(name=f"submit, {_FEW_CLIENTS} clients, controllers running", ours=[here], theirs=[there])
        _print(
            "Submit with controllers running on both sides",
            [*report.comparison([pair]), report.shares("jobgate", [here]), report.shares("kube-apiserver", [there])],
        )

    async def _lag(self, plane: ControlPlane) -> None:
        url = await new_database(self._postgres, "lag")
        counts = [(rate, round(rate * self._effort.seconds)) for rate in self._arguments.rates]
        async with self._serving(url, "all") as ours:
            base, headers = f"http://127.0.0.1:{ours.port}", {"Authorization": f"Bearer {ours.token}"}
            async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60) as http:
                bench = lag.LagBench(ours, plane, self._client, http)
                await bench.prepare(sum(count for _, count in counts))
                found = [await bench.measure(rate, count) for rate, count in counts]
        _print("Lag, role all, on kube-apiserver (goal at 500/s: p50 <= 25 ms, p99 <= 100 ms)", report.lag_table(found))

    async def _throughput(self, wanted: list[str]) -> None:
        """Measure submit and poll without controllers on either side: jobgate runs only the role api."""
        url = await new_database(self._postgres, "throughput")
        theirs = self._plane.target() if self._plane else None
        async with self._serving(url, "api") as ours:
            clients = self._arguments.clients if "submit" in wanted else []
            submitted = [await self._submit(ours, theirs, several) for several in clients]
            if submitted:
                batches = await self._batch(ours, theirs)
                _print("Submit, controllers stopped on both sides", _compare([*submitted, batches]))
            polled = await self._poll(ours, theirs) if "poll" in wanted else []
        db = await Database.open(url, pool_size=2)
        try:
            for pair in submitted:
                stages = await breakdown.of_submit(db, pair.ours[-1])
                _print(f"Where a submission's CPU goes ({pair.name})", report.breakdown_table("stage", stages))
            if polled:
                address = Address(namespace=throughput.POLLED, name="poll-0")
                stages = await breakdown.of_status(db, address, polled[0].ours[-1])
                once = await breakdown.render_of_status(db, address)
                _print(
                    f"Where a poll's CPU goes ({polled[0].name})",
                    [
                        *report.breakdown_table("stage", stages),
                        f"once for each change, for all polls: {once * 1e6:.0f} us to read and render the row",
                    ],
                )
        finally:
            await db.close()

    async def _submit(self, ours: Target, theirs: Target | None, clients: int) -> Pairs:
        name = f"submit, {clients} clients"
        return await throughput.submit(
            self._client, ours, theirs, self._effort, clients=clients, name=name, goal=_SUBMIT_GOAL
        )

    async def _batch(self, ours: Target, theirs: Target | None) -> Pairs:
        size = self._arguments.batch
        name = f"submit, {_FEW_CLIENTS} clients, batches of {size}"
        return await throughput.submit(
            self._client, ours, theirs, self._effort, clients=_FEW_CLIENTS, name=name, goal=_SUBMIT_GOAL, batch=size
        )

    async def _poll(self, ours: Target, theirs: Target | None) -> list[Pairs]:
        await throughput.prepare_poll(ours, self._plane)
        effort = Effort(pairs=self._effort.pairs, seconds=max(1.0, self._effort.seconds * 2 / 3))
        others = ["0 other pods"]
        pairs = await throughput.poll(self._client, ours, theirs, effort, clients=_FEW_CLIENTS, others=others[0])
        if theirs is not None and self._arguments.pods:
            made = await throughput.add_other_pods(self._client, theirs, self._arguments.pods)
            pairs += await throughput.poll(
                self._client, ours, theirs, effort, clients=_FEW_CLIENTS, others=f"{made} other pods"
            )
        _print("Poll: GET status beside GET Job and LIST its pods, controllers stopped", _compare(pairs))
        return pairs


async def _attempt(name: str, step: Awaitable[None]) -> None:
    """Run one step. If it fails, print the error, so that the next step can run."""
    try:
        await step
    except* (MeasurementFailed, Unavailable, httpx2.HTTPError) as failed:
        error: BaseException = failed
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        print(f"\nbench: {name}: {type(error).__name__}: {error}", flush=True)


def _compare(pairs: list[Pairs]) -> list[str]:
    lines = report.comparison(pairs)
    lines.append(report.shares(f"{pairs[0].name}, jobgate", pairs[0].ours))
    lines.append(report.shares(f"{pairs[0].name}, kube-apiserver", pairs[0].theirs))
    return [line for line in lines if line]


def _print(title: str, lines: list[str]) -> None:
    print(f"\n{title}\n\n" + "\n".join(lines), flush=True)
