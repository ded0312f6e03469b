"""Finds out by trial whether this system allows mount namespaces."""

import os
import sys
import tempfile
from pathlib import Path

from devcluster.node.processes.process import Command, Mount, StartError, start


async def namespaces_work(data_dir: Path) -> bool:
    """Run a process with one mount, and tell whether the process sees it."""
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory(dir=data_dir) as name:
        folder = Path(name)
        (folder / "source").mkdir()
        (folder / "source" / "file").write_text("")
        mount = Mount(source=folder / "source", target="/jobgate-dev-probe", read_only=True)
        command = Command(
            argv=("/bin/sh", "-c", "test -f /jobgate-dev-probe/file"),
            env={"PATH": os.environ.get("PATH", "")},
            cwd="/",
            folder=folder / "container",
            hostname="probe",
            mounts=(mount,),
            namespaces=True,
        )
        try:
            process = await start(command, lambda *_: None)
        except StartError:
            return False
        return await process.wait() == 0
