import { useEffect, useReducer } from "react";
import { tabStorage } from "../session/tab-storage";
import { attempted, type Draft, drawKey, edited, loadDraft, saveDraft, succeeded } from "./draft";

type Action =
  | { type: "edited"; text?: string; namespace?: string }
  | { type: "attempted"; key: string }
  | { type: "succeeded" };

function reduced(draft: Draft, action: Action): Draft {
  if (action.type === "edited") return edited(draft, action);
  return action.type === "attempted" ? attempted(draft, () => action.key) : succeeded(draft);
}

/** Return the draft of this tab and the functions that change it. */
export function useDraft() {
  const [draft, dispatch] = useReducer(reduced, tabStorage, loadDraft);
  useEffect(() => saveDraft(tabStorage, draft), [draft]);
  return {
    draft,
    edit: (change: { text?: string; namespace?: string }) => dispatch({ type: "edited", ...change }),
    /** Begin or repeat an attempt, and return its key. It is stored before the request is sent. */
    attempt: (): string => {
      const begun = attempted(draft, drawKey);
      saveDraft(tabStorage, begun);
      dispatch({ type: "attempted", key: begun.key ?? "" });
      return begun.key ?? "";
    },
    succeed: () => dispatch({ type: "succeeded" }),
  };
}
