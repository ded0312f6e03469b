import { ApiError } from "../api/problems";
import type { Session } from "../api/session";
import type { OidcToken } from "../api/types";
import { renewalOf } from "./oidc";

/** Milliseconds before its end from which a token is renewed: longer than a request and a slow issuer take. */
const EARLY = 60_000;

/**
 * Return a function that renews the token of the session if it ends soon. Call it before each request.
 *
 * A request renews the token, and no timer, because a laptop that sleeps past the end has no timer. Requests at the same
 * time wait for one renewal.
 */
export function renewing(
  session: Session,
  exchange: (refreshToken: string) => Promise<OidcToken>,
  now: () => number = Date.now,
): () => Promise<void> {
  let running: Promise<void> | null = null;

  const renew = async (refreshToken: string): Promise<void> => {
    try {
      const answer = await exchange(refreshToken);
      // The user may have signed out, or in as another one, meanwhile.
      if (session.renewal?.refreshToken !== refreshToken) return;
      session.renew(answer.token, renewalOf(answer) ?? { refreshToken, expiresAt: Date.parse(answer.expiresAt) });
    } catch (error) {
      // The request goes on with the old token: a 401 then asks the user to sign in.
      const isFinal = error instanceof ApiError && !error.isTemporary;
      if (isFinal && session.renewal?.refreshToken === refreshToken) session.forgetRenewal();
    }
  };

  return async () => {
    const { renewal } = session;
    if (renewal === null || renewal.expiresAt - now() > EARLY) return;
    running ??= renew(renewal.refreshToken).finally(() => {
      running = null;
    });
    await running;
  };
}
