"""Where a cluster is looked for, and credentials that are looked after."""

import base64
import os
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.k8s.connection import TOKEN_CHECK, BearerToken, connect, load_endpoint
from app.k8s.errors import ClusterNotConfigured, KubeUnauthorized
from tests.k8s.support import ManualClock


@pytest.fixture(autouse=True)
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    return home


def kubeconfig(path: Path, *, user: Any = None, **cluster: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/", **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "t0"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def test_the_error_without_configuration_names_the_places_that_were_searched() -> None:
    with pytest.raises(ClusterNotConfigured, match=r"KUBECONFIG.*~/\.kube/config.*KUBERNETES_SERVICE_HOST"):
        await connect(kubeconfig=None, context=None)


async def test_a_missing_kubeconfig_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterNotConfigured, match="/no/such/file, which is no file"):
        await connect(kubeconfig="/no/such/file", context=None)
    monkeypatch.setenv("KUBECONFIG", "/no/such/other")
    with pytest.raises(ClusterNotConfigured, match=r"\$KUBECONFIG names /no/such/other"):
        await connect(kubeconfig=None, context=None)


async def test_a_kubeconfig_without_end_is_an_error(tmp_path: Path) -> None:
    """Also if it is one of several, of which the others are files."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "other").write_text("{}")
    with pytest.raises(ClusterNotConfigured, match="is a device, pipe or socket; accepted: a regular file"):
        await connect(kubeconfig=f"{tmp_path / 'other'}{os.pathsep}{pipe}", context=None)


@pytest.mark.parametrize("content", ["", "7", "clusters: 3", "a: [", "current-context: nobody\ncontexts: []"])
async def test_a_malformed_kubeconfig_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken"
    path.write_text(content)
    with pytest.raises(ClusterNotConfigured, match="leads to no cluster"):
        await connect(kubeconfig=str(path), context=None)


async def test_an_unknown_context_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterNotConfigured, match="nobody"):
        await connect(kubeconfig=kubeconfig(tmp_path / "k"), context="nobody")


async def test_the_argument_precedes_the_environment_which_precedes_the_home_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_home: Path
) -> None:
    kubeconfig(empty_home / ".kube" / "config", server="http://home:1")
    in_environment = kubeconfig(tmp_path / "environment", server="http://environment:1")
    argument = kubeconfig(tmp_path / "argument", server="http://argument:1")
    clock = ManualClock()
    assert (await load_endpoint(kubeconfig=None, context=None, clock=clock)).url == "http://home:1"
    monkeypatch.setenv("KUBECONFIG", in_environment)
    assert (await load_endpoint(kubeconfig=None, context=None, clock=clock)).url == "http://environment:1"
    assert (await load_endpoint(kubeconfig=argument, context="x", clock=clock)).url == "http://argument:1"
    merged = f"/no/such/file:{argument}:{in_environment}"
    assert (await load_endpoint(kubeconfig=merged, context=None, clock=clock)).url == "http://argument:1"


async def test_a_malformed_service_account_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ClusterNotConfigured, match="the service account of this pod leads to no cluster"):
        await connect(kubeconfig=None, context=None)


async def test_tls_settings(tmp_path: Path) -> None:
    path = kubeconfig(
        tmp_path / "k",
        server="https://127.0.0.1:1",
        **{"insecure-skip-tls-verify": True, "tls-server-name": "kube", "proxy-url": "http://proxy:3128"},
    )
    endpoint = await load_endpoint(kubeconfig=path, context=None, clock=ManualClock())
    assert endpoint.tls is not None
    assert endpoint.tls.verify_mode is ssl.CERT_NONE
    assert (endpoint.server_name, endpoint.proxy) == ("kube", "http://proxy:3128")
    checked = kubeconfig(tmp_path / "checked", server="https://127.0.0.1:1")
    endpoint = await load_endpoint(kubeconfig=checked, context=None, clock=ManualClock())
    assert endpoint.tls is not None
    assert endpoint.tls.verify_mode is ssl.CERT_REQUIRED
    assert endpoint.tls.check_hostname


async def test_an_invalid_ca_certificate_is_an_error(tmp_path: Path) -> None:
    nonsense = base64.b64encode(b"nonsense").decode()
    path = kubeconfig(tmp_path / "k", server="https://h:1", **{"certificate-authority-data": nonsense})
    with pytest.raises(ClusterNotConfigured):
        await connect(kubeconfig=path, context=None)


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    clock = ManualClock()
    path = kubeconfig(tmp_path / "k", user={"tokenFile": str(token)})
    credentials = (await load_endpoint(kubeconfig=path, context=None, clock=clock)).credentials
    assert await credentials.authorization() == "Bearer one"
    token.write_text("two\n")
    assert await credentials.authorization() == "Bearer one"
    clock.seconds += TOKEN_CHECK
    assert await credentials.authorization() == "Bearer two"
    token.write_text("three\n")
    assert await credentials.renew()
    assert await credentials.authorization() == "Bearer three"
    assert not await credentials.renew()


async def test_a_plugin_runs_once_until_its_token_is_refused(tmp_path: Path) -> None:
    plugin, runs = tmp_path / "plugin", tmp_path / "runs"
    plugin.write_text(
        f"#!/bin/sh\necho run >> {runs}\n"
        f'echo \'{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        f'"status": {{"token": "t\'$(wc -l < {runs} | tr -d \' \')\'"}}}}\'\n'
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    clock = ManualClock()
    path = kubeconfig(tmp_path / "k", user=user)
    credentials = (await load_endpoint(kubeconfig=path, context=None, clock=clock)).credentials
    for _ in range(3):
        clock.seconds += 2 * TOKEN_CHECK
        assert await credentials.authorization() == "Bearer t1"
    assert await credentials.renew()
    assert await credentials.authorization() == "Bearer t2"
    assert runs.read_text().count("run") == 2


async def test_the_old_token_is_used_while_its_source_fails_until_it_is_refused() -> None:
    fails = False

    async def read(*, again: bool) -> str:
        assert again or not fails or clock.seconds > 0
        if fails:
            raise OSError("the plugin has crashed")
        return "Bearer one"

    clock = ManualClock()
    token = BearerToken(read, clock)
    assert await token.authorization() == "Bearer one"
    fails = True
    clock.seconds += 2 * TOKEN_CHECK
    assert await token.authorization() == "Bearer one"
    with pytest.raises(KubeUnauthorized, match="the plugin has crashed"):
        await token.renew()
