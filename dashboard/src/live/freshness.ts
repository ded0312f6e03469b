import type { Contact } from "../api/transport";

/** What the page knows about the age of its data. Times are milliseconds of the browser's clock. */
export interface ContactState {
  /** When the gateway last answered; null if it never did. */
  answeredAt: number | null;
  /** When the first of the unanswered requests since then failed; null if the last request was answered. */
  silentSince: number | null;
  /** The last contact of the controller with the cluster; null if unknown. */
  observedAt: number | null;
  /** Whether the gateway calls its data stale. */
  stale: boolean;
  /** Why the data is stale, from the gateway; empty if unknown. */
  reason: string;
}

export type Freshness =
  | { level: "live" }
  | { level: "behind"; seconds: number }
  | { level: "stale"; seconds: number | null; reason: string }
  | { level: "offline"; since: number };

export const NO_CONTACT: ContactState = {
  answeredAt: null,
  silentSince: null,
  observedAt: null,
  stale: false,
  reason: "",
};

/** Data is called live up to this age: by default, the controller reports its contact every five seconds. */
const LIVE_SECONDS = 15;

export function withContact(state: ContactState, contact: Contact, now: number): ContactState {
  if (!contact.answered) return { ...state, silentSince: state.silentSince ?? now };
  return {
    ...state,
    answeredAt: now,
    silentSince: null,
    // The clocks of the browser and of the gateway may differ by more than the age of the data.
    observedAt: contact.observedAt === null ? state.observedAt : contact.observedAt - (contact.clockOffset ?? 0),
    stale: contact.stale ?? state.stale,
  };
}

export function freshnessAt(state: ContactState, now: number): Freshness {
  if (state.silentSince !== null) return { level: "offline", since: state.answeredAt ?? state.silentSince };
  const seconds = state.observedAt === null ? null : Math.max(0, Math.round((now - state.observedAt) / 1000));
  if (state.stale) return { level: "stale", seconds, reason: state.reason };
  if (seconds !== null && seconds > LIVE_SECONDS) return { level: "behind", seconds };
  return { level: "live" };
}
