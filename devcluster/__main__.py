"""The command `python -m devcluster`: runs the embedded cluster until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import signal

from devcluster.host import absolute_path, end_with_parent, existing_file
from devcluster.registry.database import DatabaseInUseError
from devcluster.run import run
from devcluster.settings import DevClusterSettings, Timings


def parse(arguments: list[str] | None = None) -> tuple[DevClusterSettings, int | None]:
    defaults = DevClusterSettings()
    parser = argparse.ArgumentParser(prog="python -m devcluster", description=__doc__)
    parser.add_argument("--data-dir", type=absolute_path, help="directory of the state (default: in memory)")
    parser.add_argument(
        "--kubeconfig", type=absolute_path, help="file to write the kubeconfig to (default: in data dir)"
    )
    parser.add_argument("--host", default=defaults.host)
    parser.add_argument("--port", type=int, default=defaults.port, help="0 selects a free port")
    parser.add_argument("--token", default="", help="the bearer token (default: generated once)")
    parser.add_argument("--nodes", type=int, default=defaults.nodes, help="number of node agents in this process")
    parser.add_argument("--node-cpu", default=defaults.node_cpu)
    parser.add_argument("--node-memory", default=defaults.node_memory)
    parser.add_argument(
        "--node-resource", action="append", default=[], metavar="NAME=AMOUNT", help="such as nvidia.com/gpu=8"
    )
    parser.add_argument(
        "--images",
        type=existing_file,
        help="file that maps image patterns to local commands (default: images.yaml in data dir)",
    )
    parser.add_argument(
        "--watch-window", type=int, default=defaults.watch_window, help="number of changes kept for each resource"
    )
    parser.add_argument("--pod-groups", action="store_true", help="serve PodGroups of gang schedulers")
    parser.add_argument(
        "--scheduler-name", action="append", default=[], help="further schedulerName to schedule pods for"
    )
    times = Timings()
    parser.add_argument("--node-monitor-grace", type=float, default=times.node_monitor_grace, metavar="SECONDS")
    parser.add_argument("--eviction-toleration", type=int, default=times.eviction_toleration, metavar="SECONDS")
    parser.add_argument("--bookmark-period", type=float, default=times.bookmark, metavar="SECONDS")
    parser.add_argument("--parent", type=int, metavar="PID", help="stop when this process, the parent, ends")
    given = parser.parse_args(arguments)
    return _settings(given), given.parent


def _settings(given: argparse.Namespace) -> DevClusterSettings:
    return DevClusterSettings(
        data_dir=given.data_dir,
        kubeconfig=given.kubeconfig,
        host=given.host,
        port=given.port,
        token=given.token,
        nodes=given.nodes,
        node_cpu=given.node_cpu,
        node_memory=given.node_memory,
        node_resources=tuple(_pair(text) for text in given.node_resource),
        images=given.images,
        watch_window=given.watch_window,
        pod_groups=given.pod_groups,
        scheduler_names=frozenset({"default-scheduler", *given.scheduler_name}),
        timings=Timings(
            node_monitor_grace=given.node_monitor_grace,
            eviction_toleration=given.eviction_toleration,
            bookmark=given.bookmark_period,
        ),
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, amount = text.partition("=")
    if not equals or not amount:
        raise SystemExit(f"--node-resource {text!r}: write NAME=AMOUNT, such as nvidia.com/gpu=8")
    return name, amount


async def _main(settings: DevClusterSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await run(settings, stop)
    except DatabaseInUseError as error:
        raise SystemExit(f"devcluster: {error}") from error


def main(arguments: list[str] | None = None) -> None:
    settings, parent = parse(arguments)
    if parent is not None:
        end_with_parent(parent)
    asyncio.run(_main(settings))


if __name__ == "__main__":
    main()
