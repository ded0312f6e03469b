"""The API as a real control plane speaks it, above all the words of its refusals."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from app.base.clock import SystemClock
from app.domain.kubernetes.objects import Pod
from app.domain.status.refusals import judge
from app.domain.vocabulary import PendingCode, Reason
from app.k8s import resources
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT, POD
from app.k8s.errors import (
    KubeAlreadyExists,
    KubeBadRequest,
    KubeConflict,
    KubeForbidden,
    KubeInvalid,
    KubeNotFound,
    KubeStatusError,
    KubeTooLarge,
)
from app.k8s.logs import read_log
from app.k8s.resources import Discovery
from app.k8s.session.watch_events import WatchEventType
from app.k8s.watching.reflector import Reflector, ResourceSource
from app.k8s.watching.store import ReflectorStore, by_label
from tests.k8s.support import pod_manifest
from tests.support.waiting import until

HELD = {"finalizers": ["jobgate.dev/test"]}


async def test_create_get_patch_delete(live: KubeApi, namespace: str) -> None:
    made = await live.create(pod_manifest("a", namespace, labels={"x": "1"}))
    pod = await live.get(resources.POD, "a", namespace, codec=POD)
    assert (pod.metadata.uid, pod.metadata.labels["x"]) == (made.metadata.uid, "1")
    patched = await live.merge_patch(resources.POD, "a", namespace, patch={"metadata": {"labels": {"x": None}}})
    assert "x" not in patched.metadata.labels
    assert patched.metadata.version > pod.metadata.version
    test = [{"op": "test", "path": "/metadata/uid", "value": "other"}]
    with pytest.raises(KubeInvalid):
        await live.json_patch(resources.POD, "a", namespace, patch=test)
    with pytest.raises(KubeConflict) as conflict:
        await live.delete(resources.POD, "a", namespace, uid="other")
    assert not isinstance(conflict.value, KubeAlreadyExists)
    await live.delete(resources.POD, "a", namespace, uid=made.metadata.uid, grace_period=0)
    with pytest.raises(KubeNotFound) as gone:
        await live.get(resources.POD, "a", namespace, codec=POD)
    assert judged(gone.value) != PendingCode.NAMESPACE_NOT_FOUND


async def test_a_dry_run_creates_nothing(live: KubeApi, namespace: str) -> None:
    assert (await live.create(pod_manifest("a", namespace), dry_run=True)).metadata.uid
    with pytest.raises(KubeNotFound):
        await live.get(resources.POD, "a", namespace, codec=POD)


async def test_a_create_under_the_name_of_an_existing_or_terminating_object(live: KubeApi, namespace: str) -> None:
    made = await live.create(pod_manifest("a", namespace, **HELD))
    with pytest.raises(KubeAlreadyExists) as taken:
        await live.create(pod_manifest("a", namespace))
    assert "object is being deleted" not in taken.value.message
    await live.delete(resources.POD, "a", namespace, uid=made.metadata.uid, grace_period=0)
    with pytest.raises(KubeAlreadyExists) as leaving:
        await live.create(pod_manifest("a", namespace))
    assert "object is being deleted" in leaving.value.message
    await live.merge_patch(resources.POD, "a", namespace, patch={"metadata": {"finalizers": None}})


async def test_pages_and_watch(live: KubeApi, namespace: str) -> None:
    for index in range(5):
        await live.create(pod_manifest(f"p{index}", namespace, labels={"job": "j"}))
    first = await live.list_page(resources.POD, namespace, codec=POD, label_selector="job=j", limit=2)
    assert len(list(first.items)) == 2
    assert first.continue_token
    every = await live.list_all(resources.POD, namespace, codec=POD, label_selector="job in (j,k)")
    assert {pod.metadata.name for pod in every} == {f"p{index}" for index in range(5)}
    await live.delete(resources.POD, "p0", namespace, uid=every[0].metadata.uid, grace_period=0)
    stream = live.watch(
        resources.POD, namespace, codec=POD, resource_version=first.resource_version, timeout_seconds=90, idle=90
    )
    async with asyncio.timeout(60), aclosing(stream):
        async for event in stream:
            if event.type is WatchEventType.DELETED:
                break
        assert event.object.metadata.uid == every[0].metadata.uid


async def test_every_object_of_a_log_request_is_named(live: KubeApi, namespace: str) -> None:
    await live.create(pod_manifest("a", namespace))
    with pytest.raises(KubeBadRequest, match="no-such"):
        async for _ in read_log(live, namespace, "a", "no-such"):
            pass
    with pytest.raises(KubeNotFound):
        async for _ in read_log(live, namespace, "nobody", "main"):
            pass


async def test_discovery(live: KubeApi) -> None:
    discovery = Discovery(live.get_raw, SystemClock())
    assert await discovery.has(resources.STATEFUL_SET)
    assert await discovery.has(resources.POD)
    assert not await discovery.has(resources.POD_GROUPS[-1])
    assert (await live.get_raw("/version"))["major"] == "1"


def judged(error: KubeStatusError) -> str:
    """The code that the refusal gets."""
    causes = [(cause.reason, cause.message) for cause in error.causes]
    return judge(error.status, error.reason, error.message, causes, seen_before=False)[1]


async def refusal(call: Callable[[], Awaitable[object]]) -> str | None:
    """The code of the refusal of the call; None while it is not forbidden yet."""
    try:
        await call()
    except KubeForbidden as error:
        return judged(error)
    except KubeStatusError:
        return None
    return None


async def test_the_reasons_of_a_forbidden_create(live: KubeApi, namespace: str) -> None:
    nobody = pod_manifest("a", namespace)
    nobody["spec"]["serviceAccountName"] = "nobody"
    assert await refusal(lambda: live.create(nobody)) == PendingCode.SERVICE_ACCOUNT_NOT_FOUND

    await live._transport.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/resourcequotas",
        body=b'{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"pods":"0"}}}',
    )

    async def quota_is_used_up() -> bool:
        return (
            await refusal(lambda: live.create(pod_manifest("b", namespace), dry_run=True)) == PendingCode.QUOTA_EXCEEDED
        )

    await until(quota_is_used_up)

    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await live.merge_patch(resources.NAMESPACE, namespace, patch=label)

    async def pod_security() -> bool:
        return (
            await refusal(lambda: live.create(pod_manifest("b", namespace), dry_run=True)) == Reason.REFUSED_BY_CLUSTER
        )

    await until(pod_security)


async def test_a_create_in_a_terminating_or_missing_namespace(live: KubeApi, namespace: str) -> None:
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": namespace, **HELD}}
    await live.create(held)
    found = await live.get(resources.NAMESPACE, namespace, codec=OBJECT)
    await live.delete(resources.NAMESPACE, namespace, uid=found.metadata.uid)

    async def terminating() -> bool:
        why = await refusal(lambda: live.create(pod_manifest("a", namespace)))
        return why == Reason.NAMESPACE_TERMINATING

    await until(terminating)
    await live.merge_patch(resources.CONFIG_MAP, "held", namespace, patch={"metadata": {"finalizers": None}})
    with pytest.raises(KubeNotFound) as missing:
        await live.create(pod_manifest("a", "no-such-namespace"))
    assert judged(missing.value) == PendingCode.NAMESPACE_NOT_FOUND


async def test_manifests_that_the_server_refuses(live: KubeApi, namespace: str) -> None:
    misspelt = pod_manifest("a", namespace)
    misspelt["spec"]["hostNetwrok"] = True
    with pytest.raises(KubeBadRequest, match="hostNetwrok"):
        await live.create(misspelt)
    with pytest.raises(KubeInvalid) as invalid:
        await live.create(pod_manifest("Not_A_Name", namespace))
    assert [cause.field for cause in invalid.value.causes] == ["metadata.name"]
    big = pod_manifest("big", namespace)
    big["spec"]["containers"][0]["env"] = [{"name": "A", "value": "x" * 1_700_000}]
    with pytest.raises(KubeTooLarge):
        await live.create(big)
    big["spec"]["containers"][0]["env"] = [{"name": "A", "value": "x" * 4_000_000}]
    with pytest.raises(KubeTooLarge):
        await live.create(big)


async def test_a_reflector_follows_a_real_cluster(live: KubeApi, namespace: str) -> None:
    reported: list[str] = []
    store = ReflectorStore[Pod](by_label("job"), reported.append)
    source = ResourceSource(live, resources.POD, POD, namespace=namespace, label_selector="job")
    reflector = Reflector[Pod](source, store, SystemClock())

    async def there() -> dict[str, int]:
        pods = await live.list_all(resources.POD, namespace, codec=POD, label_selector="job")
        return {pod.metadata.uid: pod.metadata.version for pod in pods}

    async def equal() -> bool:
        return {pod.metadata.uid: pod.metadata.version for pod in store.all()} == await there()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(reflector.run())
        await reflector.synced.wait()
        for index in range(12):
            made = await live.create(pod_manifest(f"p{index}", namespace, labels={"job": f"j{index % 3}"}))
            if index % 2:
                await live.delete(resources.POD, f"p{index}", namespace, uid=made.metadata.uid, grace_period=0)
        # Without the label it leaves the selector, which a watch tells as a deletion.
        await live.merge_patch(resources.POD, "p0", namespace, patch={"metadata": {"labels": {"job": None}}})
        await until(lambda: len(store) == 5)
        await until(equal)
        running.cancel()
    assert set(reported) == {"j0", "j1", "j2"}
    assert (reflector.stats.relists, reflector.stats.errors) == (1, 0)
