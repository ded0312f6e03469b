import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../api/problems";
import { usePage } from "../page-context";
import type { Draft } from "./draft";
import type { ManifestRequest } from "./requests";
import { type Outcome, submit } from "./sending";

/** The result of a submission, and the draft that was submitted. */
interface Submitted {
  outcomes: readonly Outcome[];
  text: string;
  namespace: string;
}

interface SubmissionOptions {
  draft: Draft;
  /** The requests of the draft as it is now. */
  requests: () => ManifestRequest[];
  attempt: () => string;
  succeed: () => void;
}

/** Submits the draft. Temporary errors are retried: the key of the attempt makes this safe. */
export function useSubmission({ draft, requests, attempt, succeed }: SubmissionOptions) {
  const { transport } = usePage().api;
  const [submitted, setSubmitted] = useState<Submitted | null>(null);
  const mutation = useMutation({
    mutationFn: async ({ key, sent }: { key: string; sent: ManifestRequest[] }) => submit(transport, sent, key),
    retry: (failures, error) => failures < 2 && error instanceof ApiError && error.isTemporary,
  });
  const isOfDraft = submitted?.text === draft.text && submitted.namespace === draft.namespace;
  const outcomes = isOfDraft ? submitted.outcomes : [];
  return {
    outcomes,
    /** Whether everything of the present draft is stored. */
    isDone: outcomes.length > 0 && outcomes.every((outcome) => outcome.error === null),
    isPending: mutation.isPending,
    error: mutation.error,
    forget: () => setSubmitted(null),
    send: () => {
      const { text, namespace } = draft;
      mutation.mutate(
        { key: attempt(), sent: requests() },
        {
          onSuccess: (found) => {
            setSubmitted({ outcomes: found, text, namespace });
            if (found.every((outcome) => outcome.error === null)) succeed();
          },
        },
      );
    },
  };
}
