"""The command `jobgate` itself: options before the name of a command, and what is said about a name that it lacks."""

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typing_extensions import override

from jobgate.cli.exits import Exit
from jobgate.cli.options import ContextName, Namespace, Server
from jobgate.cli.printing import say

# What users of kubectl, Docker and batch systems type, and the command of this client for it.
_MEANT: Final = {
    **dict.fromkeys(("apply", "create", "run", "sbatch", "qsub", "deploy", "start", "launch", "new"), "submit"),
    **dict.fromkeys(("kill", "stop", "abort", "scancel", "qdel", "end", "terminate"), "cancel"),
    **dict.fromkeys(("ps", "ls", "jobs", "squeue", "qstat", "queue"), "list"),
    **dict.fromkeys(("rm", "remove", "del", "destroy"), "delete"),
    **dict.fromkeys(("show", "info", "inspect", "view"), "describe"),
    **dict.fromkeys(("log", "tail", "attach", "output"), "logs"),
    **dict.fromkeys(("restart", "rerun", "resubmit", "replay"), "retry"),
    **dict.fromkeys(("suspend", "hold", "freeze"), "pause"),
    **dict.fromkeys(("unsuspend", "continue", "unpause", "release"), "resume"),
    **dict.fromkeys(("follow", "monitor"), "watch"),
    **dict.fromkeys(("config", "contexts", "use-context"), "context"),
    **dict.fromkeys(("auth", "signin"), "login"),
    **dict.fromkeys(("me", "who"), "whoami"),
    **dict.fromkeys(("resize", "autoscale"), "scale"),
    **dict.fromkeys(("event",), "events"),
    **dict.fromkeys(("api-resources", "kind"), "kinds"),
}
# What jobgate leaves to kubectl, with the command that does it.
_KUBECTL: Final = {
    "exec": "kubectl exec -it POD -- COMMAND",
    "cp": "kubectl cp",
    "port-forward": "kubectl port-forward POD PORT",
    "edit": "jobgate get NAME --manifest, and jobgate diff -f FILE; PUT replaces it",
}


class Root(TyperGroup):
    """Answers a name that is no command with the command that its user means."""

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name = args[0].lower() if args else ""
        if args and args[0] not in self.commands:
            if (meant := _MEANT.get(name)) is not None:
                ctx.fail(f"there is no command {args[0]}; use `jobgate {meant}`")
            if (other := _KUBECTL.get(name)) is not None:
                ctx.fail(f"there is no command {args[0]}; use {other}. `jobgate describe NAME` shows the pods")
        return super().resolve_command(ctx, args)

    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # how pydantic calls the errors of typer
            raise
        except (KeyboardInterrupt, typer.Abort):
            raise typer.Exit(Exit.INTERRUPTED) from None  # click's own status is 1, that of a failed job


def _print_version(value: bool) -> None:  # noqa: FBT001 - the signature of a callback
    if value:
        from importlib import metadata  # noqa: PLC0415 - no other command needs it

        say(f"jobgate {metadata.version('jobgate')}")
        raise typer.Exit


def root(
    ctx: typer.Context,
    server: Server = None,
    namespace: Namespace = None,
    context: ContextName = None,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version of the client.")
    ] = False,
) -> None:
    """Apply the options before the name of a command to it, unless it has them too."""
    given = {"server": server, "namespace": namespace, "context": context}
    chosen = {name: value for name, value in given.items() if value is not None}
    if chosen and isinstance(ctx.command, TyperGroup):
        ctx.default_map = dict.fromkeys(ctx.command.commands, chosen)
