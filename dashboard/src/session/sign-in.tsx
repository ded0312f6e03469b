import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState, useSyncExternalStore } from "react";
import { Button, Heading, Input, Label, Text, TextField } from "react-aria-components";
import { bodyOf } from "../api/client";
import type { Oidc } from "../api/types";
import { usePage } from "../page-context";
import { ErrorNote } from "../ui/errors";
import { Window } from "../ui/window";
import { beginSignIn } from "./oidc";
import { tabStorage } from "./tab-storage";

/** Milliseconds between two requests while the gateway has not reached the issuer. */
const ISSUER_PERIOD = 2000;

/** Asks for a token, or for a sign-in at the issuer, while the gateway requires it. The page behind it keeps its data. */
export function SignIn() {
  const { session } = usePage().api;
  const isRefused = useSyncExternalStore(session.subscribe, () => session.isRefused);
  return (
    <Window isOpen={isRefused}>
      <SignInContent hadToken={session.token !== null} problem={session.problem} />
    </Window>
  );
}

function SignInContent({ hadToken, problem }: { hadToken: boolean; problem: string | null }) {
  const { client, session } = usePage().api;
  const { data: oidc } = useQuery({
    queryKey: ["oidc"],
    queryFn: async ({ signal }) => bodyOf(await client.GET("/api/v1/oidc", { signal })),
    refetchInterval: ({ state }) => (isWaitingForIssuer(state.data) ? ISSUER_PERIOD : false),
  });
  const hasIssuer = isWaitingForIssuer(oidc) || typeof oidc?.authorizationEndpoint === "string";
  return (
    <>
      <Heading slot="title">Sign in</Heading>
      <p>
        {hadToken
          ? "The gateway does not accept the token: it is unknown, was revoked, or has expired."
          : hasIssuer
            ? "This gateway requires that you sign in."
            : "This gateway requires a token."}
      </p>
      {problem !== null && <ErrorNote error={new Error(problem)} />}
      {oidc && hasIssuer && <SignInAtIssuer oidc={oidc} />}
      <TokenForm isSecondary={hasIssuer} onToken={(token) => session.signIn(token)} />
    </>
  );
}

function SignInAtIssuer({ oidc }: { oidc: Oidc }) {
  const [error, setError] = useState<Error | null>(null);
  const begin = () => {
    beginSignIn(oidc, tabStorage, window.location).catch((cause: unknown) =>
      setError(cause instanceof Error ? cause : new Error(String(cause))),
    );
  };
  return (
    <>
      {error !== null && <ErrorNote error={error} />}
      {isWaitingForIssuer(oidc) && <p role="status">The gateway has not reached the issuer yet. It tries again.</p>}
      <Button className="button primary" autoFocus isDisabled={isWaitingForIssuer(oidc)} onPress={begin}>
        Sign in with {hostOf(oidc.issuer ?? "")}
      </Button>
      <p className="secondary">or</p>
    </>
  );
}

function isWaitingForIssuer(oidc: Oidc | undefined): boolean {
  // An issuer for devices alone has no authorization endpoint.
  return oidc?.enabled === true && oidc.authorizationEndpoint === null && oidc.deviceAuthorizationEndpoint === null;
}

function hostOf(issuer: string): string {
  return URL.canParse(issuer) ? new URL(issuer).host : issuer;
}

function TokenForm({ isSecondary, onToken }: { isSecondary: boolean; onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== "") onToken(token.trim());
  };
  return (
    <form onSubmit={submit} className="form">
      <TextField value={token} onChange={setToken} type="password" autoComplete="off" autoFocus={!isSecondary}>
        <Label>Token</Label>
        <Input placeholder="jg_…" />
        <Text slot="description">This tab keeps the token until it closes.</Text>
      </TextField>
      <Button type="submit" className={isSecondary ? "button" : "button primary"}>
        {isSecondary ? "Sign in with the token" : "Sign in"}
      </Button>
    </form>
  );
}
