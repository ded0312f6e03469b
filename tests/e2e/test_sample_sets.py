"""SampleSets with real volumes and real runtime servers, from their source to their deletion.

Each set has its own nodes, and each node its own disk: all mounts and caches of a node are below its directory.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from app.demo.sample_story import NAME, SampleStory
from app.demo.second_node import TOLERATION
from devcluster.node.storage.fuse import mounts_below, why_no_fuse
from tests.e2e.user import User
from tests.support.cache.juicefs import needs_fuse
from tests.support.cache.object_storage import ACCESS, SECRET, object_storage
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.nodes import running_node
from tests.support.machine.processes import until_processes
from tests.support.waiting import until

WITHIN = 240.0
MERGE = {"Content-Type": "application/merge-patch+json"}
HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture
def placed(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Start one node for each list of arguments, and yield the fields of a spec that select these nodes."""
    with ExitStack() as stack:
        names = []
        for number, given in enumerate(request.param):
            home = tmp_path / f"machine-{number}"
            own = ("--cordoned", "--host-root", str(home / "disk"), *given)
            names.append(stack.enter_context(running_node(cluster, home, *own)))
        wanted = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": names}]}
        required = {"nodeSelectorTerms": [wanted]}
        yield {
            "tolerations": [TOLERATION],
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
        }


async def nothing_is_left_on(directory: Path) -> None:
    """Require that the nodes have neither mounts nor processes of pods."""
    assert mounts_below(directory) == []
    await until_processes(str(directory), lambda found: all("devcluster.node" in command for command in found.values()))


class Sets:
    """The SampleSets of one namespace, through the API and through the cluster."""

    def __init__(self, user: User, api: KubeClient) -> None:
        self._user = user
        self._api = api
        self.base = f"/api/v1/namespaces/{user.namespace}"

    async def secret(self, document: dict[str, Any]) -> None:
        (await self._api.post(f"{self.base}/secrets", document)).ok()

    async def post(self, name: str, **spec: Any) -> None:
        document = {
            "apiVersion": "batch.paddlepaddle.org/v1alpha1",
            "kind": "SampleSet",
            "metadata": {"name": name},
            "spec": {"partitions": 1, "secretRef": {"name": "volume"}, **spec},
        }
        answer = await self._user.http.post(f"{self.base}/samplesets", json=document)
        assert answer.status_code == 201, answer.text

    async def patch(self, name: str, spec: dict[str, Any]) -> None:
        answer = await self._user.http.patch(f"{self.base}/samplesets/{name}", json={"spec": spec}, headers=MERGE)
        assert answer.status_code == 202, answer.text

    async def read(self, path: str) -> Any:
        answer = await self._user.http.get(f"{self.base}/samplesets/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        view: dict[str, Any] = await until(lambda: self.read(name), holds, what=f"{name}", within=WITHIN)
        return view

    async def delete(self, name: str) -> None:
        """Delete the set, and wait until all its objects are gone."""
        await until(
            lambda: self._user.http.delete(f"{self.base}/samplesets/{name}"),
            lambda answer: answer.status_code == 200,
            what=f"{name} is gone",
            within=WITHIN,
        )

    async def nothing_is_left(self) -> None:
        """Require that the cluster has no objects of sets, except the Secrets of the test."""
        for resource in ("pods", "services", "persistentvolumeclaims"):
            assert (await self._api.get(f"{self.base}/{resource}")).ok()["items"] == [], resource
        apps = f"/apis/apps/v1/namespaces/{self._user.namespace}/statefulsets"
        assert (await self._api.get(apps)).ok()["items"] == []
        volumes = (await self._api.get("/api/v1/persistentvolumes")).ok()["items"]
        claims = [volume["spec"].get("claimRef") or {} for volume in volumes]
        assert self._user.namespace not in [claim.get("namespace") for claim in claims]
        secrets = [item["metadata"]["name"] for item in (await self._api.get(f"{self.base}/secrets")).ok()["items"]]
        assert [name for name in secrets if name.endswith("-runtime-token")] == []
        nodes = (await self._api.get("/api/v1/nodes")).ok()["items"]
        labelled = [key for node in nodes for key in node["metadata"]["labels"] if self._user.namespace in key]
        assert labelled == []


@pytest.fixture
def sets(user: User, api: KubeClient) -> Sets:
    return Sets(user, api)


def volume(home: Path) -> dict[str, Any]:
    data = {"name": "volume", "storage": "file", "bucket": f"{home}/bucket/", "metaurl": f"sqlite3://{home}/meta.db"}
    (home / "bucket").mkdir(parents=True)
    return {"metadata": {"name": "volume"}, "stringData": data}


@needs_fuse
@pytest.mark.timeout(900)
@pytest.mark.parametrize("placed", [((), ())], indirect=True, ids=["two nodes"])
async def test_a_set_is_synced_warmed_up_read_cleared_and_deleted(
    user: User, sets: Sets, placed: dict[str, Any], tmp_path: Path
) -> None:
    """The story of the demo: two nodes, and a job that mounts the set."""
    printed: list[str] = []

    def say(name: str, line: str) -> None:
        printed.append(f"{name} {line}")

    spec = {"partitions": 2, **placed}
    story = SampleStory(user.http, user.namespace, say, tmp_path / "files", sets.secret, spec)
    assert (await story.play()).as_expected, printed
    await sets.nothing_is_left()
    await nothing_is_left_on(tmp_path)
    said = "\n".join(printed)
    shares = [int(share) for share in re.findall(rf"^{NAME} .* (\d+)% cached", said, re.MULTILINE)]
    assert (shares[0], max(shares)) == (0, 100), said
    assert "servers 2/2" in said
    assert "16 files, 64 MiB, all as they were made" in said
    assert f"{NAME} is mounted by digits-reader (GenericJob)" in said
    assert re.search(r"^digits-sync Failed .* is not there$", said, re.MULTILINE)


@needs_fuse
@pytest.mark.timeout(900)
@pytest.mark.parametrize("placed", [((),)], indirect=True, ids=["one node"])
async def test_a_sync_with_a_wrong_key_fails_and_succeeds_after_an_edit(
    sets: Sets, placed: dict[str, Any], tmp_path: Path
) -> None:
    wrong = "not-the-key-of-that-storage"
    await sets.secret(volume(tmp_path))
    for name, key in (("wrong", wrong), ("right", SECRET)):
        await sets.secret({"metadata": {"name": name}, "stringData": {"access-key": ACCESS, "secret-key": key}})
    with object_storage({f"train/{number}": b"x" * 1000 for number in range(10)}) as storage:
        storage.keys = (ACCESS, SECRET)
        uri = f"minio://{storage.address}/bucket/"
        await sets.post("keyed", source={"uri": uri, "secretRef": {"name": "wrong"}}, **placed)
        await sets.until("keyed", lambda view: view["status"]["phase"] == "SyncFailed")
        events = (await sets.read("keyed/events"))["items"]
        failed = next(event for event in events if event["reason"] == "ErrorDoSyncJob")
        assert (failed["type"], "SignatureDoesNotMatch" in failed["message"]) == ("Warning", True)
        await sets.patch("keyed", {"source": {"secretRef": {"name": "right"}}})
        await sets.until("keyed", lambda view: view["status"]["phase"] == "Ready")
        # The figures that servers report are up to 30 s old.
        view = await sets.until(
            "keyed", lambda view: bool(view["status"]["cache"]) and view["status"]["cache"]["totalBytes"] == 10_000
        )
        (node,) = view["nodes"]
        assert (node["server"], node["message"]) == ("keyed-runtime-0", "")
        assert 0 <= node["cachedBytes"] == view["status"]["cache"]["cachedBytes"]
        history = (await sets.read("keyed/history"))["items"]
        answers = f"{view}{history}{await sets.read('keyed/events')}"
        assert [key for key in (wrong, SECRET, ACCESS) if key in answers] == []
        phases = [entry["phase"] for entry in history]
        assert "Syncing" in phases[phases.index("SyncFailed") :]
        await sets.delete("keyed")
        await sets.nothing_is_left()
    await nothing_is_left_on(tmp_path)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("placed", [(("--juicefs", "/nothing"),)], indirect=True, ids=["no program"])
async def test_the_status_of_a_set_says_why_its_node_cannot_mount_it(
    sets: Sets, placed: dict[str, Any], tmp_path: Path
) -> None:
    """The status contains the Event of a node without /dev/fuse, root or the juicefs command."""
    await sets.secret(volume(tmp_path))
    await sets.post("bare", noSync=True, **placed)
    view = await sets.until("bare", lambda view: view["status"]["reason"] == "FailedMount")
    assert view["status"]["phase"] == "Bound"
    assert (why_no_fuse() or "this node has no juicefs command") in view["status"]["message"]
    event = (await sets.read("bare/events"))["items"][-1]
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "FailedMount", view["status"]["message"])
    await sets.delete("bare")
    await sets.nothing_is_left()
