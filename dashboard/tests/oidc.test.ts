import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../src/api/problems";
import { Session } from "../src/api/session";
import type { Oidc } from "../src/api/types";
import {
  authorizationUrl,
  base64Url,
  callbackOf,
  challengeOf,
  exchanged,
  redirectUriOf,
  renewalOf,
} from "../src/session/oidc";
import { renewing } from "../src/session/renewing";

const OIDC: Oidc = {
  enabled: true,
  issuer: "https://id.example",
  clientId: "jobgate",
  scopes: ["openid", "email"],
  authorizationEndpoint: "https://id.example/authorize?tenant=a",
  deviceAuthorizationEndpoint: null,
};
const PENDING = { state: "s", nonce: "n", verifier: "v", hash: "#/jobs" };

describe("the answer of the issuer", () => {
  it.each([
    ["", null],
    ["?code=c", null],
    ["?state=s", null],
    ["?code=c&state=s&iss=x", { code: "c", state: "s" }],
    ["?error=access_denied&state=s", { error: "access_denied", state: "s" }],
    ["?error=a&error_description=why&state=s&code=c", { error: "why", state: "s" }],
  ])("%j is %j", (search, expected) => {
    expect(callbackOf(search)).toEqual(expected);
  });
});

it.each([
  ["https://gw.example/#/jobs?phase=Running", "https://gw.example/"],
  ["https://gw.example/?code=c&state=s#/x", "https://gw.example/"],
  ["https://gw.example/team/jobgate/?code=c#/x", "https://gw.example/team/jobgate/"],
  ["https://gw.example/team/index.html", "https://gw.example/team/"],
])("the redirect URI of %s is %s", (address, expected) => {
  expect(redirectUriOf(address)).toBe(expected);
});

describe("the address at the issuer", () => {
  it("asks for a code with PKCE, and keeps the query of the endpoint", () => {
    const url = new URL(authorizationUrl(OIDC, PENDING, "challenge", "https://gw.example/") ?? "");
    expect(url.origin + url.pathname).toBe("https://id.example/authorize");
    expect(Object.fromEntries(url.searchParams)).toEqual({
      tenant: "a",
      response_type: "code",
      client_id: "jobgate",
      redirect_uri: "https://gw.example/",
      scope: "openid email",
      state: "s",
      nonce: "n",
      code_challenge: "challenge",
      code_challenge_method: "S256",
    });
  });

  it("is unknown while the gateway has not reached the issuer", () => {
    expect(authorizationUrl({ ...OIDC, authorizationEndpoint: null }, PENDING, "c", "https://gw.example/")).toBeNull();
  });
});

it("derives the challenge as RFC 7636 does in its appendix B", async () => {
  const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  expect(await challengeOf(verifier)).toBe("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
  expect(base64Url(new Uint8Array([251, 255, 254]))).toBe("-__-");
});

function storage(): Storage {
  const items = new Map<string, string>();
  return {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
    clear: () => items.clear(),
    key: () => null,
    get length() {
      return items.size;
    },
  };
}

describe("renewal", () => {
  const NOW = 1_000_000;
  const answer = { token: "new", refreshToken: "r2", expiresAt: new Date(NOW + 3_600_000).toISOString() };
  let kept: Storage;
  let session: Session;

  beforeEach(() => {
    kept = storage();
    session = new Session(kept);
  });

  it("leaves a token alone that is valid for long, or cannot be renewed", async () => {
    const exchange = vi.fn();
    const renew = renewing(session, exchange, () => NOW);
    await renew();
    session.signIn("jg_x");
    await renew();
    session.signIn("old", { refreshToken: "r1", expiresAt: NOW + 61_000 });
    await renew();
    expect(exchange).not.toHaveBeenCalled();
  });

  it("replaces a token that ends soon once, for all requests at the same time, in silence", async () => {
    const exchange = vi.fn(async () => answer);
    const renew = renewing(session, exchange, () => NOW);
    session.signIn("old", { refreshToken: "r1", expiresAt: NOW + 30_000 });
    const listener = vi.fn();
    session.subscribe(listener);
    await Promise.all([renew(), renew()]);
    expect(exchange.mock.calls).toEqual([["r1"]]);
    expect(listener).not.toHaveBeenCalled();
    expect([session.token, session.renewal?.refreshToken]).toEqual(["new", "r2"]);
    expect(new Session(kept).token).toBe("new");
  });

  it("keeps the refresh token if the issuer gives no other", async () => {
    const renew = renewing(
      session,
      async () => ({ ...answer, refreshToken: null }),
      () => NOW,
    );
    session.signIn("old", { refreshToken: "r1", expiresAt: NOW });
    await renew();
    expect([session.token, session.renewal?.refreshToken]).toEqual(["new", "r1"]);
  });

  it.each([
    [401, null],
    [403, null],
    [503, "r1"],
    [0, "r1"],
  ])("after the status %i, the refresh token is %j", async (status, expected) => {
    const exchange = vi.fn(async () => Promise.reject(new ApiError(status, "X", "x")));
    const renew = renewing(session, exchange, () => NOW);
    session.signIn("old", { refreshToken: "r1", expiresAt: NOW });
    await renew();
    expect([session.token, session.renewal?.refreshToken ?? null]).toEqual(["old", expected]);
  });

  it("does not sign a user in again who signs out meanwhile", async () => {
    const renew = renewing(
      session,
      async () => {
        session.signOut();
        return answer;
      },
      () => NOW,
    );
    session.signIn("old", { refreshToken: "r1", expiresAt: NOW });
    await renew();
    expect([session.token, session.renewal, kept.length]).toEqual([null, null, 0]);
  });
});

describe("the end of a token", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it.each([-3, 0, 3])("is that of a clock which is wrong by %i h", async (hours) => {
    const now = Date.parse("2026-01-31T12:00:00Z");
    vi.useFakeTimers({ now: now + hours * 3_600_000 });
    const answer = { token: "t", refreshToken: "r", expiresAt: "2026-01-31T13:00:00Z" };
    const headers = { Date: new Date(now).toUTCString() };
    vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(answer), { headers })));
    const found = renewalOf(await exchanged("https://gw.example/", { refreshToken: "r" }));
    expect(found).toEqual({ refreshToken: "r", expiresAt: Date.now() + 3_600_000 });
  });
});
