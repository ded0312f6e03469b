"""With a port of their own, metrics are served there and nowhere else, and that port serves nothing else."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.gateways.process import gateway_process
from tests.support.machine.ports import kept_port


def require_address(host: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no address {host}")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_metrics_have_a_port_of_their_own(host: str, workers: str, database_url: str, tmp_path: Path) -> None:
    require_address(host)
    with kept_port() as port:
        settings = {"JOBGATE_ROLE": "api", "JOBGATE_WORKERS": workers, "JOBGATE_METRICS_PORT": port}
        settings["JOBGATE_HOST"] = host
        async with gateway_process(database_url, tmp_path / "no-kubeconfig", tmp_path, **settings) as process:
            url = await process.start()
            assert urlsplit(url).hostname == host
            address = f"[{host}]" if ":" in host else host
            async with (
                httpx2.AsyncClient(base_url=url) as public,
                httpx2.AsyncClient(base_url=f"http://{address}:{port}") as own,
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
