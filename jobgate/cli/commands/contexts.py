"""`jobgate login`, `whoami` and `context`: which gateways this user works with."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from jobgate.cli import oidc
from jobgate.cli.exits import Exit
from jobgate.cli.options import STRUCTURED, ContextName, Format, Output, Server, format_result, gateway, guard
from jobgate.cli.printing import advise, report, say
from jobgate.cli.rendering.tables import table
from jobgate.client import NotFoundError, Page, UnauthenticatedError, config, wire
from jobgate.client.renewal import with_token

_MAX_TOKEN: Final = 1 << 16  # characters of a line of standard input; a header of a request has fewer


def login(
    server: Annotated[str, typer.Argument(help="Address of the gateway, such as https://jobgate.example.")],
    name: Annotated[str, typer.Option("--context", help="Name of the context.")] = "default",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Namespace of its commands.")] = "default",
    token: Annotated[
        str | None, typer.Option(help="Token; asked for if it is missing, - for none.", show_default=False)
    ] = None,
    with_oidc: Annotated[
        bool | None,
        typer.Option(
            "--oidc/--no-oidc",
            help="Sign in at the gateway's OIDC issuer in a browser; by default if it has one and there is no token.",
            show_default=False,
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            help="File of the certificate authorities of the gateway, beside those of the system.", show_default=False
        ),
    ] = None,
    output: Format = Output.TEXT,
) -> None:
    """Sign in with a token or in a browser, and save the gateway.

    Later commands use both.

    Example: jobgate login https://jobgate.example --context lab -n vision
    """
    with guard():
        address = config.checked_address(server)
        authorities = None if ca_file is None else str(ca_file.absolute())
        chosen = config.Context(server=address, namespace=namespace, ca_file=authorities)
        given = token or os.environ.get(config.TOKEN)
        issuer = None if with_oidc is False or (given and not with_oidc) else oidc.find_issuer(chosen)
        if with_oidc and issuer is None:
            raise oidc.SignInError(f"the gateway {address} has no OIDC issuer; give --token")
        if issuer is not None and (with_oidc or issuer.device_authorization_endpoint is not None):
            signed_in = oidc.sign_in(chosen, issuer, advise)
            chosen = with_token(chosen, signed_in)
        else:
            given = given or _ask_for_token()
            chosen.token = None if given == "-" else config.checked_token(given)
        _check(chosen)
        file = config.contexts_file(os.environ)
        saved = config.load(file)
        config.save(file, config.with_context(saved, name, chosen))
    if output in STRUCTURED:
        say(format_result({"context": name, "server": chosen.server, "namespace": namespace}, output))
    else:
        say(f"context {name}: {chosen.server}, namespace {namespace}")


def _ask_for_token() -> str:
    """Ask for the token on the terminal, or read it from standard input.

    Raises:
        ContextError: standard input has none.
    """
    token: str = (
        typer.prompt("token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline(_MAX_TOKEN).strip()
    )
    if not token:
        raise config.ContextError("there is no token; accepted: --token, JOBGATE_TOKEN, or a line of standard input")
    return token


def _check(chosen: config.Context) -> None:
    """Send the cheapest request that needs the token and the namespace.

    Raises:
        JobgateError: the gateway refuses it.
    """
    path = f"{wire.API}/namespaces/{wire.segment(chosen.namespace)}/jobs"
    call = wire.Call(method="GET", path=path, answer=Page[Any], query=wire.query_of(page_size=1))
    with config.connect(chosen) as client:
        try:
            client.send(call)
        except UnauthenticatedError:
            wrong = "does not accept this token" if chosen.token else "needs a token"
            raise config.ContextError(f"the gateway {chosen.server} {wrong}; nothing was saved") from None
        except NotFoundError:
            reached = client.whoami().namespaces
            if reached is None:
                raise
            accepted = " or ".join(f"-n {each}" for each in reached) or "nothing, because it reaches no namespace"
            raise config.ContextError(
                f"the token does not reach the namespace {chosen.namespace}; nothing was saved; accepted: {accepted}"
            ) from None


def whoami(output: Format = Output.TEXT, server: Server = None, context: ContextName = None) -> None:
    """Show who this user is, and what the token allows.

    Example: jobgate whoami
    """
    with gateway(server, None, context) as client:
        caller = client.whoami()
        if output in STRUCTURED:
            say(format_result(caller, output))
        elif output is Output.NAME:
            say(caller.name)
        else:
            allowed = "all namespaces" if caller.namespaces is None else ", ".join(caller.namespaces) or "no namespace"
            say(f"{caller.name}, {caller.role} in {allowed} of {client.url}")


def context(
    name: Annotated[str | None, typer.Argument(help="Context to use from now on.", show_default=False)] = None,
    namespace: Annotated[
        str | None, typer.Option("-n", "--namespace", help="Its namespace from now on.", show_default=False)
    ] = None,
    output: Format = Output.TEXT,
) -> None:
    """List the contexts, choose one, or change its namespace.

    Examples: jobgate context; jobgate context lab; jobgate context -n vision
    """
    with guard():
        path = config.contexts_file(os.environ)
        saved = config.load(path)
        if name is not None or namespace is not None:
            saved = config.chosen_context(saved, name, namespace)
            config.save(path, saved)
    rows = [
        ["*" if known == saved.current else "", known, one.server, one.namespace, "yes" if one.token else "no"]
        for known, one in sorted(saved.contexts.items())
    ]
    if output is Output.NAME:
        for known in sorted(saved.contexts):
            say(known)
    elif output in STRUCTURED:
        shown = {known: {"server": one.server, "namespace": one.namespace} for known, one in saved.contexts.items()}
        say(format_result({"current": saved.current, "contexts": shown}, output))
    elif rows:
        say(table(["", "CONTEXT", "SERVER", "NAMESPACE", "TOKEN"], rows))
    else:
        report("there are no contexts; `jobgate login` creates one")
    raise typer.Exit(Exit.SUCCEEDED)
