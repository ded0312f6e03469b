"""A client of one gateway and one namespace, and of its cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.support.clusters.kube import MERGE, KubeClient
from tests.support.waiting import until

DEADLINE = 120.0
Body = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Jobs:
    http: httpx2.AsyncClient
    kube: KubeClient
    namespace: str

    # The gateway

    def path(self, name: str, *more: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}/jobs", name, *more])

    async def submit(self, manifest: Mapping[str, Any]) -> Body:
        answer = await self.http.post(f"/api/v1/namespaces/{self.namespace}/jobs", json=manifest)
        assert answer.status_code == 201, answer.text
        job: Body = answer.json()
        return job

    async def ask(self, method: str, name: str, *action: str, json: object = None) -> Body:
        """An action or an edit, which must be accepted."""
        headers = {"Content-Type": MERGE} if method == "PATCH" else None
        answer = await self.http.request(method, self.path(name, *action), json=json, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        body: Body = answer.json() if answer.content else {}
        return body

    async def pause(self, name: str) -> None:
        await self.ask("POST", name, "pause")

    async def resume(self, name: str) -> None:
        await self.ask("POST", name, "resume")

    async def cancel(self, name: str) -> None:
        await self.ask("POST", name, "cancel")

    async def delete(self, name: str) -> None:
        await self.ask("DELETE", name)

    async def scale(self, name: str, replicas: int, **more: str) -> Body:
        """Ask for another size; of which task, and why, may be said in `more`."""
        return await self.ask("POST", name, "scale", json={"replicas": replicas, **more})

    async def read(self, name: str, *more: str, **params: str) -> Any:
        answer = await self.http.get(self.path(name, *more), params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def read_uid(self, uid: str, *more: str) -> Any:
        answer = await self.http.get("/".join(["/api/v1/jobs", uid, *more]))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def job(self, name: str) -> Body:
        found: Body = await self.read(name)
        return found

    async def status(self, name: str) -> Body:
        found: Body = (await self.read(name, "status"))["status"]
        return found

    async def conditions(self, name: str) -> dict[str, Body]:
        return {condition["type"]: condition for condition in (await self.read(name, "status"))["conditions"]}

    async def replicas(self, name: str) -> dict[str, Body]:
        items = (await self.read(name, "replicas", pageSize="200"))["items"]
        return {f"{item['task']}-{item['rank']}": item for item in items}

    async def replica(self, name: str, key: str = "worker-0") -> Body:
        return (await self.replicas(name))[key]

    async def history(self, name: str) -> list[Body]:
        found: list[Body] = (await self.read(name, "history", pageSize="200"))["items"]
        return found

    async def reasons(self, name: str) -> list[str]:
        return [row["reason"] for row in await self.history(name)]

    async def scale_records(self, name: str) -> list[Body]:
        found: list[Body] = (await self.read(name, "scale-records"))["items"]
        return found

    async def until_settled(self, name: str, seq: int = 1) -> Body:
        """The scale record of that number, once its outcome is known."""

        async def read() -> Body | None:
            return next((one for one in await self.scale_records(name) if one["seq"] == seq), None)

        return await until(
            read,
            lambda record: record["outcome"] is not None,
            what=f"scale record {seq} of {name}",
            within=DEADLINE,
        )

    async def log(self, name: str, **params: str) -> httpx2.Response:
        answer = await self.http.get(self.path(name, "logs"), params=params)
        assert answer.status_code == 200, answer.text
        return answer

    async def until_log(self, name: str, words: str, **params: str) -> str:
        """The log, once it has these words."""

        async def read() -> str:
            answer = await self.http.get(self.path(name, "logs"), params=params)
            return answer.text if answer.status_code == 200 else ""

        return await until(read, lambda text: words in text, what=f"log of {name}", within=DEADLINE)

    async def until(self, name: str, *phases: str, within: float = DEADLINE) -> Body:
        """The status, once the phase is one of these."""
        return await self.until_status(name, lambda status: status["phase"] in phases, within=within)

    async def until_status(self, name: str, wanted: Callable[[Body], object], *, within: float = DEADLINE) -> Body:
        return await until(lambda: self.status(name), wanted, what=f"status of {name}", within=within)

    async def until_observed(self, name: str, generation: int) -> Body:
        """The status, once the controller has seen this generation."""
        return await self.until_status(name, lambda status: status["observedGeneration"] >= generation)

    async def until_replica(
        self, name: str, wanted: Callable[[Body], object], key: str = "worker-0", *, within: float = DEADLINE
    ) -> Body:
        """The replica, once it is as wanted; it is not there before the controller has looked at the job."""

        async def read() -> Body | None:
            return (await self.replicas(name)).get(key)

        return await until(read, wanted, what=f"{name}-{key}", within=within)

    async def until_replicas(self, name: str, wanted: Callable[[Mapping[str, Body]], object]) -> dict[str, Body]:
        what = f"replicas of {name}"
        return await until(lambda: self.replicas(name), wanted, what=what, within=DEADLINE)

    async def pending(self, name: str, code: str, *, count: int = 0, within: float = DEADLINE) -> Body:
        """The pending reason with this code, once it is that of at least `count` replicas."""

        def found(status: Body) -> Body | None:
            reasons = status["pendingReasons"]
            return next((reason for reason in reasons if reason["code"] == code and reason["count"] >= count), None)

        reason = found(await self.until_status(name, found, within=within))
        assert reason is not None
        return reason

    # The cluster

    async def fault(self, **rule: Any) -> None:
        """Have the embedded cluster misbehave in this namespace, until `no_faults`."""
        (await self.kube.post("/devcluster/faults", {"namespace": self.namespace, **rule})).ok()

    async def until_hit(self, times: int = 1) -> None:
        """Wait until the injected faults have been met that often."""
        await self.kube.eventually("/devcluster/faults", lambda rules: _hits(rules) >= times, within=DEADLINE)

    async def no_faults(self) -> None:
        (await self.kube.delete("/devcluster/faults")).ok()

    def objects(self, kind: str, *name: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}/{kind}", *name])

    async def pod(self, name: str) -> Body:
        found: Body = (await self.kube.get(self.objects("pods", name))).ok()
        return found

    async def until_pod(self, name: str, wanted: Callable[[Body], object]) -> Body:
        found: Body = await self.kube.eventually(self.objects("pods", name), wanted, within=DEADLINE)
        return found

    async def pod_uids(self, uid: str) -> dict[str, str]:
        """Return the uids of the pods of a job by name."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await self.of_job("pods", uid)}

    async def of_job(self, kind: str, uid: str) -> list[Body]:
        """The job's objects of that kind which are there."""
        answer = await self.kube.get(self.objects(kind), labelSelector=f"jobgate.dev/job-uid={uid}")
        items: list[Body] = answer.ok()["items"]
        return items

    async def names(self, kind: str, uid: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in await self.of_job(kind, uid))

    async def until_objects(
        self, kind: str, uid: str, wanted: Callable[[Sequence[Body]], object], *, within: float = DEADLINE
    ) -> list[Body]:
        what = f"{kind} of {uid}"
        return await until(lambda: self.of_job(kind, uid), wanted, what=what, within=within)

    async def until_pod_gone(self, name: str) -> None:
        await self.kube.gone(self.objects("pods", name), within=DEADLINE)

    async def until_released(self, uid: str) -> list[Body]:
        """The job's pods, once none carries a finalizer."""
        return await self.until_objects("pods", uid, lambda pods: not any(_finalizers(pod) for pod in pods))


def first_of(replica: Body) -> Body:
    """The first attempt of a replica."""
    found: Body = next(item for item in replica["attempts"] if item["number"] == 1)
    return found


def _hits(rules: Any) -> int:
    return sum(rule["hits"] for rule in rules["items"])


def _finalizers(pod: Body) -> list[str]:
    found: list[str] = pod["metadata"].get("finalizers") or []
    return found
