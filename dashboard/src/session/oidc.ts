/**
 * Sign-in at an OIDC issuer with a code and PKCE (RFC 7636).
 *
 *     button ─▶ issuer ─▶ ?code=…&state=… ─▶ POST /api/v1/oidc/token ─▶ token of the session
 *
 * The page may send requests only to its own origin, so the gateway sends the code to the issuer. What the page must
 * remember meanwhile is in the session storage of the tab.
 */
import { errorOf, noAnswer } from "../api/problems";
import type { Renewal } from "../api/session";
import { contactOf } from "../api/transport";
import type { Oidc, OidcToken, OidcTokenRequest } from "../api/types";
import type { TabStorage } from "./tab-storage";

const KEY = "jobgate.sign-in";

/** A sign-in that has begun: what the answer of the issuer must match, and the view to return to. */
export interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  hash: string;
}

/** What the issuer has added to the address of the page; null if it is no answer of an issuer. */
export type Callback = { code: string; state: string } | { error: string; state: string } | null;

export function callbackOf(search: string): Callback {
  const query = new URLSearchParams(search);
  const state = query.get("state");
  const code = query.get("code");
  const error = query.get("error");
  if (state === null) return null;
  if (error !== null) return { error: query.get("error_description") ?? error, state };
  return code === null ? null : { code, state };
}

/** The address of the page without view and answer. The issuer must know it as a redirect URI of the client. */
export function redirectUriOf(address: string): string {
  return new URL(".", address).href;
}

/** Return the address at the issuer that begins the sign-in; null if the gateway does not know it. */
export function authorizationUrl(oidc: Oidc, pending: Pending, challenge: string, redirectUri: string): string | null {
  if (oidc.authorizationEndpoint === null || oidc.clientId === null) return null;
  const url = new URL(oidc.authorizationEndpoint);
  const query = {
    response_type: "code",
    client_id: oidc.clientId,
    redirect_uri: redirectUri,
    scope: oidc.scopes.join(" "),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: challenge,
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}

export function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}

export async function challengeOf(verifier: string): Promise<string> {
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

function random(): string {
  return base64Url(crypto.getRandomValues(new Uint8Array(32)));
}

/** Leave the page for the issuer. */
export async function beginSignIn(oidc: Oidc, storage: TabStorage, location: Location): Promise<void> {
  if (!window.isSecureContext)
    throw new Error("Signing in at the issuer needs https, because the browser makes a key.");
  const pending = { state: random(), nonce: random(), verifier: random(), hash: location.hash };
  const challenge = await challengeOf(pending.verifier);
  const url = authorizationUrl(oidc, pending, challenge, redirectUriOf(location.href));
  if (url === null) throw new Error("The gateway has not reached the issuer yet.");
  storage.setItem(KEY, JSON.stringify(pending));
  location.assign(url);
}

/**
 * Finish the sign-in if the issuer has sent the browser back: restore the view, and return the token.
 *
 * Rejects if the answer belongs to no sign-in of this tab, or if the issuer or the gateway refuses it.
 */
export async function finishSignIn(base: string, storage: TabStorage): Promise<OidcToken | null> {
  const callback = callbackOf(window.location.search);
  if (callback === null) return null;
  const pending = taken(storage);
  const redirectUri = redirectUriOf(window.location.href);
  // A reload or a bookmark must not send the code again.
  window.history.replaceState(null, "", `${redirectUri}${pending?.hash ?? ""}`);
  if (pending === null || pending.state !== callback.state) {
    throw new Error("The answer of the issuer does not belong to a sign-in of this tab. Sign in again.");
  }
  if ("error" in callback) throw new Error(`The issuer refuses the sign-in: ${callback.error}`);
  const { verifier: codeVerifier, nonce } = pending;
  return exchanged(base, { code: callback.code, codeVerifier, redirectUri, nonce });
}

/** Return the pending sign-in, and forget it: each is used once. */
function taken(storage: TabStorage): Pending | null {
  const text = storage.getItem(KEY);
  storage.removeItem(KEY);
  return text === null ? null : (JSON.parse(text) as Pending);
}

/** Exchange a code or a refresh token. This needs no token, so it does not use the transport. */
export async function exchanged(base: string, body: OidcTokenRequest): Promise<OidcToken> {
  let response: Response;
  try {
    response = await fetch(new URL("api/v1/oidc/token", base), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (cause) {
    throw noAnswer(cause);
  }
  if (!response.ok) throw await errorOf(response);
  const answer = (await response.json()) as OidcToken;
  // By the clock of this browser, which may be wrong.
  const offset = contactOf(response, Date.now()).clockOffset ?? 0;
  return { ...answer, expiresAt: new Date(Date.parse(answer.expiresAt) - offset).toISOString() };
}

export function renewalOf(answer: OidcToken): Renewal | null {
  const { refreshToken, expiresAt } = answer;
  return refreshToken === null ? null : { refreshToken, expiresAt: Date.parse(expiresAt) };
}
