"""Queues for one test of crashes, in which nothing may be left afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.queues.kueue import Queues, has_kueue, queues_of
from tests.crash.pods import PodWatcher, pod_watcher
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import GatewayProcess


@asynccontextmanager
async def watched_queues(
    cluster: Cluster, api: KubeClient, namespace: str, gateway: GatewayProcess, *, cpu: int
) -> AsyncIterator[tuple[Queues, PodWatcher]]:
    """Make queues in a namespace whose pods Kueue gates, and watch its pods.

    Afterwards no quota is in use, nothing is left, and no pod was created twice.
    """
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
        jobs = Jobs(http=http, kube=api, namespace=namespace)
        if not await has_kueue(jobs):
            pytest.skip("the cluster has no Kueue: run `make test-cluster`")
        with pod_watcher(cluster, namespace) as pods:
            async with queues_of(jobs, cpu=cpu) as queues:
                await queues.add_local("default")
                yield queues, pods
                await queues.until_nothing_left()
            assert not pods.doubles()
