"""The command `python -m devcluster.node`: runs one node until Ctrl-C or SIGTERM."""

import argparse
import asyncio
import contextlib
import logging
import signal

from devcluster.host import absolute_path, end_with_parent, existing_file, program_path
from devcluster.node.agent import NodeAgent
from devcluster.node.settings import NodeSettings
from devcluster.testing.script import script_player


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devcluster.node", description=__doc__)
    parser.add_argument("--kubeconfig", type=absolute_path, required=True)
    parser.add_argument("--name", default="node-1")
    parser.add_argument("--data-dir", type=absolute_path, help="directory of the state (default: .jobgate/nodes/NAME)")
    parser.add_argument(
        "--images",
        type=existing_file,
        help="file that maps images to commands: docs/embedded-cluster.md (default: images.yaml in data dir)",
    )
    parser.add_argument("--cpu", default="8")
    parser.add_argument("--memory", default="16Gi")
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--lease-interval", type=float, default=10.0, help="seconds (default: 10)")
    parser.add_argument("--configmap-refresh", type=float, default=60.0, help="seconds (default: 60)")
    parser.add_argument("--backoff-base", type=float, default=10.0, help="seconds (default: 10)")
    parser.add_argument(
        "--retry", type=float, default=2.0, help="seconds until missing objects are requested again (default: 2)"
    )
    parser.add_argument("--zone", help="value of the label topology.kubernetes.io/zone of the node (default: no label)")
    parser.add_argument(
        "--cordoned", action="store_true", help="run only pods that name this node or tolerate the cordon"
    )
    parser.add_argument(
        "--no-namespaces", action="store_true", help="substitute mount paths even if mounts are possible"
    )
    parser.add_argument("--host-root", type=absolute_path, help="root directory of hostPath volumes and JuiceFS caches")
    parser.add_argument("--juicefs", type=program_path, help="the command that mounts JuiceFS volumes")
    parser.add_argument(
        "--pod-addresses",
        choices=("routed", "loopback"),
        default="routed",
        help="routed: 198.18.0.0/15 if a route can be added, for the proxy of a real API server; loopback: 127.0.0.0/8",
    )
    parser.add_argument("--parent", type=int, metavar="PID", help="stop when this process, the parent, ends")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args(arguments)
    given.data_dir = given.data_dir or absolute_path(f".jobgate/nodes/{given.name}")
    return given


async def serve(arguments: argparse.Namespace) -> None:
    settings = NodeSettings(
        data_dir=arguments.data_dir,
        images_file=arguments.images or arguments.data_dir / "images.yaml",
        cpu=arguments.cpu,
        memory=arguments.memory,
        pods=arguments.pods,
        labels={} if arguments.zone is None else {"topology.kubernetes.io/zone": arguments.zone},
        lease_interval=arguments.lease_interval,
        configmap_refresh=arguments.configmap_refresh,
        backoff_base=arguments.backoff_base,
        mount_retry=arguments.retry,
        schedulable=not arguments.cordoned,
        host_root=arguments.host_root,
        juicefs=arguments.juicefs,
        routed_addresses=arguments.pod_addresses == "routed",
        namespaces=False if arguments.no_namespaces else None,
    )
    agent = NodeAgent(arguments.kubeconfig, arguments.name, settings, script_player)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(agent.run())
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        group.create_task(announce(agent, task, arguments.name))


async def announce(agent: NodeAgent, running: "asyncio.Task[None]", name: str) -> None:
    """Print the line that callers wait for, once the node is registered."""
    ready = agent.ready
    # The agent may end with an error before it is ready.
    while not (ready.is_set() or running.done()):
        await asyncio.wait([running], timeout=0.05)
    if ready.is_set():
        print(f"NODE={name}", flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> None:
    given = parse_arguments(arguments)
    if given.parent is not None:
        end_with_parent(given.parent)
    logging.basicConfig(level=logging.INFO if given.verbose else logging.WARNING)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(serve(given))


if __name__ == "__main__":
    main()
