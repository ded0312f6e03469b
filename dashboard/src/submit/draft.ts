import type { TabStorage } from "../session/tab-storage";
/** What the user has written. It survives a reload of the tab, because its session storage contains it. */

export interface Draft {
  text: string;
  /** The namespace of manifests that name none; empty for the default. */
  namespace: string;
  /**
   * The Idempotency-Key of the present attempt to submit; null before the first.
   *
   * It stays until the submission succeeds or the draft changes. A repeated click, and a repetition after a lost answer,
   * therefore never submit twice.
   */
  key: string | null;
}

const KEY = "jobgate.draft";
export const EMPTY_DRAFT: Draft = { text: "", namespace: "", key: null };

/** Change the text or the namespace. A changed draft is another submission. */
export function edited(draft: Draft, change: Partial<Pick<Draft, "text" | "namespace">>): Draft {
  const { text = draft.text, namespace = draft.namespace } = change;
  return text === draft.text && namespace === draft.namespace ? draft : { text, namespace, key: null };
}

/** Begin or repeat an attempt to submit the draft. */
export function attempted(draft: Draft, draw: () => string): Draft {
  return draft.key === null ? { ...draft, key: draw() } : draft;
}

/** A later submission of the same draft is another one. */
export function succeeded(draft: Draft): Draft {
  return { ...draft, key: null };
}

/** Add manifests after the present ones. */
export function withAppended(text: string, added: readonly string[]): string {
  const parts = [text, ...added]
    .map((part) => part.replace(/\r\n?/g, "\n").trimEnd())
    .filter((part) => part.trim() !== "");
  return parts.length === 0 ? "" : `${parts.join("\n---\n")}\n`;
}

export function loadDraft(storage: TabStorage): Draft {
  try {
    const stored: unknown = JSON.parse(storage.getItem(KEY) ?? "null");
    if (typeof stored !== "object" || stored === null) return EMPTY_DRAFT;
    const { text, namespace, key } = stored as Partial<Record<keyof Draft, unknown>>;
    return {
      text: typeof text === "string" ? text : "",
      namespace: typeof namespace === "string" ? namespace : "",
      key: typeof key === "string" ? key : null,
    };
  } catch {
    return EMPTY_DRAFT;
  }
}

/** Store the draft. A text that is larger than the storage is not stored. */
export function saveDraft(storage: TabStorage, draft: Draft): void {
  try {
    storage.setItem(KEY, JSON.stringify(draft));
  } catch {
    storage.removeItem(KEY);
  }
}

/** Draw a key. `crypto.randomUUID` exists only on pages that were loaded by HTTPS. */
export function drawKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
