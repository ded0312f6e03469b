"""With a port of their own, metrics are served there and nowhere else, and that port serves nothing else."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.gateway_process import gateway_process
from tests.support.ports import kept_port


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_metrics_have_a_port_of_their_own(workers: str, database_url: str, tmp_path: Path) -> None:
    with kept_port() as port:
        settings = {"JOBGATE_ROLE": "api", "JOBGATE_WORKERS": workers, "JOBGATE_METRICS_PORT": port}
        async with gateway_process(database_url, tmp_path / "no-kubeconfig", tmp_path, **settings) as process:
            url = await process.start()
            host = urlsplit(url).hostname
            async with (
                httpx2.AsyncClient(base_url=url) as public,
                httpx2.AsyncClient(base_url=f"http://{host}:{port}") as own,
            ):
                assert (await public.get("/livez")).status_code == 200
                hidden = await public.get("/metrics")
                assert (hidden.status_code, hidden.json()["code"]) == (404, "RouteNotFound")
                shown = await own.get("/metrics")
                assert shown.status_code == 200
                assert 'route="/livez"' in shown.text
                for path in ("/livez", "/readyz", "/api/v1/jobs", "/openapi.json", "/"):
                    assert (await own.get(path)).status_code == 404, path
                assert (await own.post("/metrics")).status_code == 405
