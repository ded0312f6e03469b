"""A gateway process whose requests to the cluster pass through a proxy that records them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.clusters.kube import Cluster
from tests.support.clusters.kube_proxy import KubeProxy, kube_proxy
from tests.support.gateways.process import GatewayProcess, gateway_process


@asynccontextmanager
async def proxied_gateway(
    database_url: str, cluster: Cluster, directory: Path, **environment: str
) -> AsyncIterator[tuple[GatewayProcess, KubeProxy]]:
    async with (
        kube_proxy(cluster) as proxy,
        gateway_process(database_url, proxy.kubeconfig(directory / "kubeconfig"), directory, **environment) as gateway,
    ):
        await gateway.start()
        yield gateway, proxy
