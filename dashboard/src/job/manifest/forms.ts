/** The forms of a manifest: as the client posted it, or with the defaults that jobgate has filled in. */
export type ManifestForm = "posted" | "complete";

export const FORMS: readonly (readonly [ManifestForm, string])[] = [
  ["posted", "As posted"],
  ["complete", "With defaults"],
];

/** What describes a form of a job's manifest. `isKnown`: jobgate has recorded how the manifest was posted. */
export function describe(form: ManifestForm, isKnown: boolean, generation: number): string {
  if (form === "complete") return `What jobgate runs, with defaults filled in: generation ${generation}.`;
  if (!isKnown)
    return "It is not known how this manifest was posted: an earlier version of jobgate stored or edited it.";
  return "The document of the last submission or PUT, with later patches. Scaling and pausing do not change it.";
}
