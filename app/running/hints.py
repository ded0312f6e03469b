"""What `jobgate dev` and the demo print: commands to try next, in another terminal."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.bundled import bundled_directory

# The server that the commands of the client use by default.
DEFAULT_URL: Final = "http://127.0.0.1:8080"
EXAMPLE: Final = "generic-job/flaky.yaml"


def command() -> str:
    """Return how a user calls this program: by its name if the shell finds it, otherwise by its path."""
    script = Path(sys.executable).with_name("jobgate")
    found = shutil.which("jobgate")
    if not script.exists() or (found is not None and Path(found).resolve() == script.resolve()):
        return "jobgate"
    return shlex.quote(_shorten(script))


def example() -> str:
    """Return the path of an example that a user can submit."""
    return shlex.quote(_shorten(Path(str(bundled_directory("examples"))).resolve() / EXAMPLE))


def _shorten(path: Path) -> str:
    """Return a path as short as a shell in the current directory permits."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def dashboard_line(url: str) -> str:
    """Return the line that leads a user to the dashboard."""
    return f"open {url}/ in a browser: the dashboard"


def kubeconfig_line(kubeconfig: str) -> str:
    """Return the line that makes kubectl in a shell use this cluster."""
    return f"export KUBECONFIG={shlex.quote(kubeconfig)}"


def of_dev(url: str) -> str:
    """Return what `jobgate dev` prints when it serves."""
    submitted = Path(EXAMPLE).stem
    return _text(
        url,
        (
            f"submit -f {example()} --watch",
            f"describe {submitted}",
            f"logs {submitted} --attempt 1",
            "explain genericjob.spec",
            "list",
        ),
    )


def of_demo(url: str, kubeconfig: str) -> str:
    """Return what the demo prints after its stories: commands that show what they left behind."""
    shown = _text(
        url,
        (
            "list",
            "describe flaky",
            "logs flaky --attempt 1",
            "history pausable",
            "history experiment",
            "list samplesets --deleted",
            f"submit -f {example()} --name again --watch",
        ),
    )
    kubectl = f"  {kubeconfig_line(kubeconfig)}\n  kubectl get pods"
    return f"\n{shown}\n{kubectl}\n\nstill serving; Ctrl-C ends it. The dashboard shows all examples: {url}/\n"


def cancel(name: str, url: str) -> str:
    """Return the command that cancels a job of this gateway."""
    server = [] if url == DEFAULT_URL else ["--server", url]
    return " ".join([command(), "cancel", name, *map(shlex.quote, server)])


def _text(url: str, commands: Sequence[str]) -> str:
    server = [] if url == DEFAULT_URL else [f"export JOBGATE_SERVER={url}"]
    name = command()
    lines = [*server, *(f"{name} {rest}" for rest in commands), f"curl {url}/api/v1/jobs"]
    return "\n".join(["try in another terminal:", *(f"  {line}" for line in lines)])
