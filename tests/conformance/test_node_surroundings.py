"""What a container finds around it: environment, files, names; and what a restart of the node makes of it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node_support import Node, Pods, condition, python, shell, state, status_of
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.waiting import until

pytestmark = pytest.mark.conformance


async def test_environment_and_arguments(pods: Pods) -> None:
    (await pods.api.post(f"{pods.base}/configmaps", {"metadata": {"name": "cm"}, "data": {"a": "one"}})).ok()
    (await pods.api.post(f"{pods.base}/secrets", {"metadata": {"name": "s"}, "data": {"pw": "c2VjcmV0"}})).ok()
    env: list[dict[str, Any]] = [
        {"name": "T_A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}},
        {"name": "T_S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "pw"}}},
        {"name": "T_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "T_X", "value": "$(T_A)-$$(T_A)-$(NOPE)"},
    ]
    main = shell(
        'echo "$T_A $T_S $T_X $P_a"; echo $(T_IP); hostname',
        env=env,
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "cm"}}],
    )
    await pods.create("p", main, hostname="me")
    pod = await pods.ended("p")
    lines = (await pods.log("p")).splitlines()
    assert lines == ["one secret one-$(T_A)-$(NOPE) one", pod["status"]["podIP"], "me"]


async def test_an_image_provides_its_commands_on_the_path(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    """A shell, an entry of PATH, a hook and a probe find `python` where the machine has only a shell and `sleep`."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("sh", "sleep"):
        found = shutil.which(program)
        assert found is not None
        (programs / program).symlink_to(found)
    node = Node(cluster, tmp_path / "node", path=str(programs)).start()
    try:
        pods = Pods(api, namespace, node)
        say = 'exec python -c "import sys; print(sys.argv)" "a b" \'"$HOME"\''
        image = {"image": "python:3.12-slim"}
        await pods.create("shell", shell(say, **image))
        await pods.create("own-path", shell(say, **image, env=[{"name": "PATH", "value": f"/nosuch:{programs}"}]))
        await pods.create("unknown", shell(say))
        probe = {"exec": {"command": ["sh", "-c", "python3 -c pass"]}, "periodSeconds": 1, "timeoutSeconds": 60}
        await pods.create("probe", shell("sleep 60", **image, readinessProbe=probe))
        for name in ("shell", "own-path"):
            assert (await pods.ended(name))["status"]["phase"] == "Succeeded", await pods.log(name)
            assert await pods.log(name) == "['-c', 'a b', '\"$HOME\"']\n"
        assert state(await pods.ended("unknown"))["terminated"]["exitCode"] == 127
        await pods.until("probe", lambda pod: status_of(pod).get("ready") is True)
    finally:
        await node.remove(api)


async def test_missing_configuration_is_waited_for(pods: Pods) -> None:
    await pods.create("env", shell("true", envFrom=[{"configMapRef": {"name": "later"}}]))
    mounts = [{"name": "v", "mountPath": "/v"}]
    volume = {"name": "v", "configMap": {"name": "later"}}
    await pods.create("volume", shell("cat /v/k", volumeMounts=mounts), volumes=[volume])
    waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "later" not found'}
    await pods.until("env", lambda pod: state(pod).get("waiting") == waiting)
    await pods.until("volume", lambda pod: state(pod).get("waiting", {}).get("reason") == "ContainerCreating")
    (await pods.api.post(f"{pods.base}/configmaps", {"metadata": {"name": "later"}, "data": {"k": "v"}})).ok()
    for name in ("env", "volume"):
        assert (await pods.ended(name))["status"]["phase"] == "Succeeded"
    assert await pods.log("volume") == "v"


async def test_volumes_are_where_they_are_mounted_and_refreshed(pods: Pods) -> None:
    (await pods.api.post(f"{pods.base}/configmaps", {"metadata": {"name": "cm"}, "data": {"a": "old", "b": "x"}})).ok()
    (await pods.api.post(f"{pods.base}/secrets", {"metadata": {"name": "s"}, "data": {"pw": "c2VjcmV0"}})).ok()
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['app']"}}
    volumes = [
        {"name": "cm", "configMap": {"name": "cm", "items": [{"key": "a", "path": "deep/a"}]}},
        {"name": "all", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {"items": [labels]}}]}},
        {"name": "tmp", "emptyDir": {}},
    ]
    mounts = [
        {"name": "cm", "mountPath": "/etc/app/config"},
        {"name": "all", "mountPath": "/all"},
        {"name": "tmp", "mountPath": "/scratch"},
        {"name": "tmp", "mountPath": "/scratch/sub", "subPath": "inner"},
    ]
    script = (
        "cat /etc/app/config/deep/a /all/pw /all/labels; echo; echo x > /scratch/file; pwd;"
        "until [ $(cat /etc/app/config/deep/a) = new ]; do sleep 0.1; done; echo refreshed"
    )
    await pods.create("p", shell(script, volumeMounts=mounts, workingDir="/scratch/sub"), volumes=volumes)
    await pods.logged("p", "/scratch/sub\n")  # a container runs before its first words are in its log
    (await pods.api.patch(f"{pods.base}/configmaps/cm", {"data": {"a": "new"}})).ok()
    assert (await pods.ended("p"))["status"]["phase"] == "Succeeded"
    assert (await pods.log("p")).splitlines() == ["oldsecretp", "/scratch/sub", "refreshed"]
    assert not Path("/scratch").exists()


async def test_pods_find_each_other_by_service_name(pods: Pods) -> None:
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"group": "test"}}
    (await pods.api.post(f"{pods.base}/services", {"metadata": {"name": "job"}, "spec": service})).ok()
    server = (
        "import os, socket; s = socket.create_server((os.environ['IP'], 7000)); c = s.accept()[0];"
        "print(c.recv(100).decode()); c.sendall(b'pong')"
    )
    client = (
        "import socket, time, sys\n"
        "for i in range(1000):\n"
        "    try: s = socket.create_connection((sys.argv[1], 7000), 1); break\n"
        "    except OSError: time.sleep(0.05)\n"
        "s.sendall(b'ping from ' + socket.gethostname().encode()); print(s.recv(100).decode())"
    )
    ip = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    names = ["w0.job", f"w0.job.{pods.namespace}", f"w0.job.{pods.namespace}.svc.cluster.local"]
    await pods.create("w0", python(server, env=ip), hostname="w0", subdomain="job")
    await pods.create("w1", python(client, args=[names[2]]), hostname="w1", subdomain="job")
    assert (await pods.ended("w1"))["status"]["phase"] == "Succeeded", await pods.log("w1")
    assert await pods.log("w1") == "pong\n"
    await pods.ended("w0")
    assert await pods.log("w0") == "ping from w1\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            [{"phase": "Running"}, {"terminated": {"container": "main", "exitCode": 137, "reason": "OOMKilled"}}],
            ("Failed", None, {"exitCode": 137, "reason": "OOMKilled"}),
        ),
        (
            [{"phase": "Running"}, {"evict": "The node was low on resource: memory."}],
            ("Failed", "Evicted", {"exitCode": 137}),
        ),
        ([{"phase": "Running"}, {"after": 0.1, "phase": "Succeeded"}], ("Succeeded", None, {"exitCode": 0})),
        (
            [{"fail": {"reason": "UnexpectedAdmissionError", "message": "no gpu"}}],
            ("Failed", "UnexpectedAdmissionError", {}),
        ),
        ([{"colour": "red"}], ("Failed", "InvalidScript", {})),
    ],
)
async def test_scripts_reach_the_end_they_name(pods: Pods, script: Any, expected: Any) -> None:
    await pods.create("p", shell("echo never"), script=script)
    pod = await pods.ended("p")
    phase, reason, ended = expected
    assert (pod["status"]["phase"], pod["status"].get("reason")) == (phase, reason)
    assert state(pod).get("terminated", {}) | ended == state(pod).get("terminated", {})
    assert condition(pod, "DisruptionTarget")["status"] == ("True" if reason == "Evicted" else "Missing")


async def test_scripts_wait_speak_and_say_odd_things(pods: Pods) -> None:
    steps = [
        {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
        {"after": 2, "phase": "Running"},
        {"log": "last words"},
        {"status": {"message": "odd \u0000 byte", "reason": "Odd"}},
    ]
    await pods.create("p", shell("echo never"), script=steps)
    await pods.until("p", lambda pod: state(pod).get("waiting", {}).get("message") == "no such image")
    pod = await pods.until("p", lambda pod: pod["status"].get("reason") == "Odd")
    assert pod["status"]["message"] == "odd \u0000 byte"
    assert await pods.log("p") == "last words\n"
    await pods.delete("p")
    await pods.gone("p")


async def test_without_mount_namespaces_paths_are_substituted(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    plain = Node(cluster, tmp_path, "--no-namespaces").start()
    try:
        own = Pods(api, namespace, plain)
        mounts = [{"name": "v", "mountPath": "/data"}]
        env = [{"name": "WHERE", "value": "/data/x"}]
        main = shell('echo hi > /data/x; cat "$WHERE"; echo why > /dev/termination-log', volumeMounts=mounts, env=env)
        await own.create("p", main, volumes=[{"name": "v", "emptyDir": {}}])
        pod = await own.ended("p")
        assert (await own.log("p"), state(pod)["terminated"].get("message")) == ("hi\n", "why\n")
    finally:
        await plain.remove(api)


def commands_of(data_dir: Path) -> list[str]:
    """The command lines of all processes that carry a container's mark of this node."""
    mark, found = f"JOBGATE_DEV_CONTAINER={data_dir}/".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
        except OSError:
            continue
    return found


async def test_a_killed_agent_leaves_nothing_that_its_next_start_does_not_settle(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    own = Node(cluster, tmp_path).start()
    try:
        held = Pods(api, namespace, own)
        await held.create("never", shell("sleep 1000; true"))
        kept = "test -f /v/x && echo kept; touch /v/x; setsid sleep 1000 & sleep 1000"
        main = shell(kept, volumeMounts=[{"name": "v", "mountPath": "/v"}])
        await held.create("always", main, restartPolicy="Always", volumes=[{"name": "v", "emptyDir": {}}])
        for name in ("never", "always"):
            await held.running(name)
        own.stop(kill=True)
        own.start()
        pod = await held.ended("never")
        assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "Terminated")
        assert condition(pod, "DisruptionTarget")["reason"] == "TerminationByKubelet"
        again = await held.until("always", lambda pod: "running" in state(pod) and status_of(pod)["restartCount"] == 1)
        assert again["status"]["phase"] == "Running"
        await held.logged("always", "kept")  # a container runs before its first words are in its log
        assert await held.log("always") == "kept\n"
        await until(lambda: commands_of(tmp_path), lambda commands: commands.count("sleep 1000") == 2, within=120)
        own.stop()
        # A killed process stays in the process table for a moment.
        await until(lambda: commands_of(tmp_path), lambda commands: not commands, within=20)
    finally:
        await own.remove(api)


async def test_a_node_that_is_lost_stops_reporting(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    own = Node(cluster, tmp_path).start()
    try:
        held = Pods(api, namespace, own)
        await held.create("p", shell("true"), script=[{"phase": "Running"}, {"after": 0.3, "nodeLost": True}])
        await held.running("p")
        await held.create("late", shell("true"), script=[{"phase": "Running"}])
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{own.name}"
        seen: list[str] = []

        def silent(found: dict[str, Any]) -> bool:
            seen.append(found["spec"]["renewTime"])
            # Renewed every second: forty equal readings 50 ms apart are two seconds of silence.
            return len(seen) > 40 and len(set(seen[-40:])) == 1

        await api.eventually(lease, silent)
    finally:
        await own.remove(api)
