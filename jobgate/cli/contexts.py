"""`jobgate login` and `jobgate context`: which gateways this user works with."""

import os
from typing import Annotated, Any

import typer

from jobgate.cli import connection, oidc
from jobgate.cli.exits import Exit
from jobgate.cli.options import STRUCTURED, Format, Output, guarded, printed
from jobgate.cli.printing import advise, say
from jobgate.cli.tables import table
from jobgate.client import Page, wire


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
    output: Format = Output.TEXT,
) -> None:
    """Sign in with a token or in a browser, save the token with its gateway, and use both.

    Example: jobgate login https://jobgate.example --context lab -n vision
    """
    with guarded():
        address = connection.checked_address(server)
        chosen = connection.Context(server=address, namespace=namespace)
        given = token or os.environ.get(connection.TOKEN)
        issuer = None if with_oidc is False or (given and not with_oidc) else oidc.offered(address)
        if with_oidc and issuer is None:
            raise oidc.SignInError(f"the gateway {address} has no OIDC issuer; give --token")
        if issuer is not None and (with_oidc or issuer.device_authorization_endpoint is not None):
            signed_in = oidc.sign_in(address, issuer, advise)
            chosen = oidc.with_token(chosen, signed_in)
        else:
            given = given or typer.prompt("token", hide_input=True)
            chosen.token = None if given == "-" else connection.checked_token(given)
        with connection.connect(chosen) as client:
            # The cheapest request that needs the token and the namespace.
            path = f"{wire.API}/namespaces/{namespace}/jobs"
            client.send(wire.Call(method="GET", path=path, answer=Page[Any], query=wire.query_of(page_size=1)))
        file = connection.contexts_file(os.environ)
        saved = connection.load(file)
        connection.save(file, connection.with_context(saved, name, chosen))
    if output in STRUCTURED:
        say(printed({"context": name, "server": chosen.server, "namespace": namespace}, output))
    else:
        say(f"context {name}: {chosen.server}, namespace {namespace}")


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
    with guarded():
        path = connection.contexts_file(os.environ)
        saved = connection.load(path)
        if name is not None or namespace is not None:
            saved = connection.chosen_context(saved, name, namespace)
            connection.save(path, saved)
    rows = [
        ["*" if known == saved.current else "", known, one.server, one.namespace, "yes" if one.token else "no"]
        for known, one in sorted(saved.contexts.items())
    ]
    if output in STRUCTURED:
        shown = {known: {"server": one.server, "namespace": one.namespace} for known, one in saved.contexts.items()}
        say(printed({"current": saved.current, "contexts": shown}, output))
    elif rows:
        say(table(["", "CONTEXT", "SERVER", "NAMESPACE", "TOKEN"], rows))
    else:
        say(f"there are no contexts; {connection.DEFAULT_SERVER} is used. Create one with `jobgate login`")
    raise typer.Exit(Exit.SUCCEEDED)
