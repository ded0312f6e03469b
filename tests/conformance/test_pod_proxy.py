"""HTTP to a pod's port through the API server, and the names by which a set's pods find each other."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.manifests import pod
from tests.conformance.node_support import Pods, python
from tests.support.clusters.kube import KubeClient
from tests.support.machine.routes import require_routes

pytestmark = pytest.mark.conformance

PORT = 7716
SERVER = """
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        seen = {"method": self.command, "path": self.path, "body": self.rfile.read(length).decode()}
        seen["headers"] = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps(seen).encode()
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Pod", os.environ["HOSTNAME"])
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = answer
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((os.environ["POD_IP"], 7716), Handler).serve_forever()
"""
ENVIRONMENT = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
PROBE = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}


@pytest_asyncio.fixture
async def server(pods: Pods) -> AsyncIterator[str]:
    """The path of a pod's proxy, once the pod listens."""
    main = python(SERVER, env=ENVIRONMENT, readinessProbe=PROBE)
    await pods.create("p", main, terminationGracePeriodSeconds=0)
    await pods.until("p", is_ready)
    reachable(pods)
    yield f"{pods.base}/pods/p:{PORT}/proxy"


def is_ready(found: dict[str, Any]) -> bool:
    conditions = found["status"].get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def reachable(pods: Pods) -> None:
    """Skip the test if the pods of the node have loopback addresses, which a real API server refuses."""
    if pods.api.cluster.real:
        require_routes()


async def test_requests_reach_the_pod_as_they_were_made(pods: Pods, server: str) -> None:
    found = await pods.api.get(f"{server}/cacheStatus/cache%20Info.json", a="b")
    assert (found.status, found.headers["X-Pod"]) == (200, "p")
    assert (found.body["method"], found.body["path"]) == ("GET", "/cacheStatus/cache%20Info.json?a=b")
    sent = await pods.api.post(f"{server}/upload/syncOptions", {"x": 1}, terminate="true")
    assert (sent.body["method"], sent.body["path"], sent.body["body"]) == (
        "POST",
        "/upload/syncOptions?terminate=true",
        '{"x": 1}',
    )
    assert sent.body["headers"]["content-type"] == "application/json"
    # The caller's credential is the API server's own; it is not the pod's to see.
    assert "authorization" not in sent.body["headers"]
    missing = await pods.api.get(f"{server}/missing")
    assert (missing.status, missing.body["path"]) == (404, "/missing")
    assert (await pods.api.delete(f"{server}/x")).body["method"] == "DELETE"


async def test_headers_of_ones_own_pass(pods: Pods, server: str) -> None:
    own = {"X-Jobgate-Token": "secret", "filename": "abc"}
    found = await pods.api.request("GET", f"{server}/x", None, own, {})
    assert (found.body["headers"]["x-jobgate-token"], found.body["headers"]["filename"]) == ("secret", "abc")


async def test_what_cannot_be_reached_is_said(pods: Pods, server: str) -> None:
    other = server.replace(str(PORT), "7717")
    unreachable = await pods.api.get(f"{other}/x")
    assert "error trying to reach service: dial tcp" in unreachable.refused(503, "ServiceUnavailable")
    absent = await pods.api.get(f"{pods.base}/pods/nobody:{PORT}/proxy/x")
    assert absent.refused(404, "NotFound") == 'pods "nobody" not found'


async def test_a_pod_without_an_address_is_refused(api: KubeClient, namespace: str) -> None:
    base = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(base, pod(schedulerName="nobody"))).ok()
    assert (await api.get(f"{base}/p:{PORT}/proxy/x")).refused(400, "BadRequest") == "address not allowed"


async def test_pods_of_a_set_know_each_other_by_name(pods: Pods) -> None:
    root = pods.base
    # Each looks itself up before it serves: a Service of ready pods only would keep them waiting.
    service = {"clusterIP": "None", "selector": {"app": "w"}, "publishNotReadyAddresses": True}
    (await pods.api.post(f"{root}/services", {"metadata": {"name": "svc"}, "spec": service})).ok()
    program = (
        "import os, socket, time\n"
        "while True:\n"
        "    try: print(socket.gethostname(), 'sees', socket.gethostbyname('w-1.svc')); break\n"
        "    except OSError: time.sleep(0.05)\n"
    ) + SERVER
    spec = {
        "nodeName": pods.node.name,
        "terminationGracePeriodSeconds": 0,
        "containers": [python(program, env=ENVIRONMENT, readinessProbe=PROBE)],
    }
    template = {"metadata": {"labels": {"app": "w"}}, "spec": spec}
    found = {"replicas": 2, "serviceName": "svc", "podManagementPolicy": "Parallel", "template": template}
    manifest = {"metadata": {"name": "w"}, "spec": found | {"selector": {"matchLabels": {"app": "w"}}}}
    (await pods.api.post(f"/apis/apps/v1/namespaces/{pods.namespace}/statefulsets", manifest)).ok()
    second = await pods.until("w-1", lambda body: bool(body["status"].get("podIP")))
    await pods.logged("w-1", "w-1 sees")
    await pods.until("w-1", is_ready)
    await pods.logged("w-0", f"w-0 sees {second['status']['podIP']}")
    reachable(pods)
    answer = await pods.api.get(f"{root}/pods/w-1:{PORT}/proxy/")
    assert (answer.headers["X-Pod"], answer.body["path"]) == ("w-1", "/")
