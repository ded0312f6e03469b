"""Kueue's cohorts: what ClusterQueues borrow from and lend to each other."""

import pytest

from tests.support.clusters.kube import KubeClient
from tests.support.clusters.kueue import Json, Queues, pod_set

pytestmark = pytest.mark.conformance


async def test_cohorts_lend_what_they_have(api: KubeClient, queues: Queues) -> None:
    await queues.add_flavor("f")
    f, left, right, top = (queues.wide(name) for name in ("f", "left", "right", "top"))
    await queues.add_cohort("top", {"f": {"cpu": "2"}})
    await queues.add_cohort("left", {"f": {"cpu": "1"}}, parentName=top)
    await queues.add_cohort("right", parentName=top)
    # A quota of 2 with what the Cohorts have: 2 + 1 + 2, and what b lends: 3 of 4.
    await queues.add_queue("a", {"f": {"cpu": "2"}}, cohortName=left)
    await queues.add_queue("b", {"f": {"cpu": "4"}}, cohortName=right, lending={"cpu": "3"})
    await queues.add_queue("bounded", {"f": {"cpu": "1"}}, cohortName=left, borrowing={"cpu": "1"})
    lack = f"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor {f}, 1 more needed"

    def beyond(amount: int, most: int) -> str:
        request = f"previously considered podsets requests (0) + current podset request ({amount})"
        why = f"insufficient quota for cpu in flavor {f}, {request} > maximum capacity ({most})"
        return f"couldn't assign flavors to pod set main: {why}"

    await queues.submit("too-large", "a", pod_set(cpu="10"))
    await queues.pending("too-large", beyond(10, 9))
    await queues.submit("bounded", "bounded", pod_set(cpu="3"))
    await queues.pending("bounded", beyond(3, 2))
    await queues.submit("first", "a", pod_set(cpu="8"))
    await queues.admitted("first")
    used = {"name": "cpu", "total": "8", "borrowed": "6"}
    await api.eventually(queues.cluster_queue("a"), lambda obj: _usage(obj) == [used])
    await queues.submit("second", "b", pod_set(cpu="3"))
    await queues.pending("second", lack)
    await queues.submit("own", "b", pod_set(cpu="2"))
    await queues.admitted("own")
    # A Cohort that gets more quota lets others in.
    (await api.patch(queues.cohort("left"), {"spec": {"resourceGroups": queues.groups({"f": {"cpu": "5"}})}})).ok()
    await queues.admitted("second")


def _usage(cluster_queue: Json) -> list[Json]:
    return [item for flavor in cluster_queue["status"].get("flavorsUsage", ()) for item in flavor["resources"]]
