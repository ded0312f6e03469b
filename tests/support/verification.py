"""The invariants of ARCHITECTURE.md, as `jobgate verify` proves them at the end of a test."""

from app.running.operations.verification import as_text, verify
from app.settings import Settings
from tests.support.clusters.kube import Cluster


async def find_faults(url: str, cluster: Cluster) -> list[str]:
    """Return what `jobgate verify` reports, in lines. A live controller has two seconds to complete what it does."""
    settings = Settings(database_url=url, kubeconfig=str(cluster.kubeconfig))
    return as_text([result for result in await verify(settings, database_only=False, pause=2.0) if result.faults])


async def assert_invariants(url: str, cluster: Cluster) -> None:
    """Require that all checks of the database and the cluster hold."""
    faults = await find_faults(url, cluster)
    assert not faults, "\n".join(faults)
