import { errorOf, noAnswer } from "./problems";
import type { Session } from "./session";

/** What an answer says about the gateway, its time and its contact with the cluster. Times are milliseconds. */
export interface Contact {
  /** Whether the gateway answered. */
  answered: boolean;
  /** The clock of the gateway minus that of this browser; null if the answer has no Date. */
  clockOffset: number | null;
  /** The last contact of the controller with the cluster; null if the answer does not say. */
  observedAt: number | null;
  /** Whether the gateway calls its data stale; null if the answer does not say. */
  stale: boolean | null;
}

export type OnContact = (contact: Contact) => void;

/**
 * Sends requests to the gateway that serves this page, with the token of the session.
 *
 * A fetch that fails, and an answer that is not 2xx or 304, rejects with an ApiError.
 */
export class Transport {
  constructor(
    readonly session: Session,
    /** The address of the gateway, with a slash at its end. */
    private readonly base: string,
    private readonly onContact: OnContact,
    /** Renews a token that ends soon, before each request. */
    private readonly renewToken: () => Promise<void>,
  ) {}

  readonly fetch = async (request: Request): Promise<Response> => {
    await this.renewToken();
    const token = this.session.token;
    const headers = new Headers(request.headers);
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    let response: Response;
    try {
      response = await fetch(new Request(request, { headers, credentials: "same-origin", cache: "no-store" }));
    } catch (cause) {
      if (request.signal.aborted) throw cause;
      this.onContact({ answered: false, clockOffset: null, observedAt: null, stale: null });
      throw noAnswer(cause);
    }
    this.onContact(contactOf(response, Date.now()));
    if (response.status === 401) this.session.refused(token);
    if (!response.ok && response.status !== 304) throw await errorOf(response);
    return response;
  };

  /** Send a GET for a path relative to the gateway, for answers that are read as a stream. */
  get(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    return this.fetch(new Request(new URL(path, this.base), { headers, signal }));
  }

  /** Send a POST whose body is text, such as YAML, for a path relative to the gateway. */
  post(path: string, headers: Record<string, string>, body: string, signal?: AbortSignal): Promise<Response> {
    return this.fetch(new Request(new URL(path, this.base), { method: "POST", headers, body, signal: signal ?? null }));
  }
}

export function contactOf(response: Response, now: number): Contact {
  const date = Date.parse(response.headers.get("Date") ?? "");
  const observedAt = Date.parse(response.headers.get("Jobgate-Observed-At") ?? "");
  const stale = response.headers.get("Jobgate-Stale");
  return {
    answered: true,
    clockOffset: Number.isNaN(date) ? null : date - now,
    observedAt: Number.isNaN(observedAt) ? null : observedAt,
    stale: stale === null ? (Number.isNaN(observedAt) ? null : false) : stale === "true",
  };
}
