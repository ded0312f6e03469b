import type { TabStorage } from "../session/tab-storage";

const KEY = "jobgate.token";
const RENEWAL_KEY = "jobgate.renewal";

/** How a token of an OIDC issuer is replaced before it ends, at a time in milliseconds. */
export interface Renewal {
  refreshToken: string;
  expiresAt: number;
}

/**
 * The token of the signed-in user. It is kept in the session storage of this tab: the browser forgets it when the tab
 * closes, and sends it to no other origin.
 */

export class Session {
  #token: string | null;
  #renewal: Renewal | null;
  #refused = false;
  #users = 0;
  #problem: string | null = null;
  readonly #listeners = new Set<() => void>();

  constructor(private readonly storage: TabStorage) {
    this.#token = storage.getItem(KEY);
    const renewal = storage.getItem(RENEWAL_KEY);
    this.#renewal = renewal === null ? null : (JSON.parse(renewal) as Renewal);
  }

  get token(): string | null {
    return this.#token;
  }

  /** Increases when another user may have signed in. A renewed token is that of the same user. */
  get users(): number {
    return this.#users;
  }

  get renewal(): Renewal | null {
    return this.#renewal;
  }

  /** Why the last sign-in at an issuer has failed; null if it has not. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Whether the gateway has refused the token, or requires one. */
  get isRefused(): boolean {
    return this.#refused;
  }

  signIn(token: string, renewal: Renewal | null = null): void {
    this.#problem = null;
    this.#refused = false;
    this.#users += 1;
    this.#keep(token, renewal);
    this.#changed();
  }

  /** Note that a sign-in at an issuer has failed. A link to a false answer must not end the session of a signed-in user. */
  failed(problem: string): void {
    this.#problem = problem;
    this.#refused ||= this.#token === null;
    this.#changed();
  }

  /** Replace the token by the next one of the same user. Listeners learn of it only if the last one was refused. */
  renew(token: string, renewal: Renewal): void {
    this.#keep(token, renewal);
    if (!this.#refused) return;
    this.#refused = false;
    this.#changed();
  }

  forgetRenewal(): void {
    this.#renewal = null;
    this.storage.removeItem(RENEWAL_KEY);
  }

  signOut(): void {
    this.#token = null;
    this.#problem = null;
    this.#refused = true;
    this.#users += 1;
    this.#renewal = null;
    // The storage also contains the draft of a submission.
    this.storage.clear();
    this.#changed();
  }

  /** Note that an answer was 401. `token` is the one that the request had: a newer one is not affected. */
  refused(token: string | null): void {
    if (token === this.#token && !this.#refused) {
      this.#refused = true;
      this.#changed();
    }
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #keep(token: string, renewal: Renewal | null): void {
    this.#token = token;
    this.storage.setItem(KEY, token);
    this.#renewal = renewal;
    if (renewal === null) this.storage.removeItem(RENEWAL_KEY);
    else this.storage.setItem(RENEWAL_KEY, JSON.stringify(renewal));
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
