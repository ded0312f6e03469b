/** What the gateway and the cluster answer to a dry run, as problems of the text. Pure. */
import type { ApiError } from "../api/problems";
import type { ClusterFinding, DryRun } from "../api/types";
import type { TextProblem } from "./documents";
import { fieldInDocument, type ManifestRequest, placeInItem, placeInRequest } from "./requests";

/** An item of the answer to a dry run. That of a SampleSet or a SampleJob has only the manifest and its warnings. */
export type DryRunItem = Pick<DryRun, "manifest" | "warnings"> & Partial<DryRun>;

/** The answer to the dry run of one request: its items, or the error with which the gateway refused it. */
export interface Check {
  request: ManifestRequest;
  items: readonly DryRunItem[];
  error: ApiError | null;
}

/** What a finding of the cluster means for a job that is submitted unchanged. */
export const EFFECTS: Readonly<Record<ClusterFinding["effect"], readonly [TextProblem["severity"], string]>> = {
  Fails: ["error", "The job would fail"],
  Waits: ["warning", "The job would wait"],
  Warns: ["info", "The cluster warns"],
};

export function problemsOf(checks: readonly Check[]): TextProblem[] {
  return checks.flatMap((check) => [...refusals(check), ...findings(check)]);
}

function refusals({ request, error }: Check): TextProblem[] {
  if (error === null) return [];
  if (error.errors.length === 0) {
    return [{ severity: "error", code: error.code, field: "", message: error.message, place: null }];
  }
  return error.errors.map(({ pointer, code, detail, accepted }) => ({
    severity: "error",
    code,
    field: fieldInDocument(request, pointer),
    message: accepted ? `${detail.replace(/(?<=[^.?!])$/, ".")} Accepted: ${accepted}` : detail,
    place: placeInRequest(request, pointer),
  }));
}

function findings({ request, items }: Check): TextProblem[] {
  return items.flatMap((item, index) =>
    (item.cluster?.findings ?? []).map((finding) => {
      const [severity, effect] = EFFECTS[finding.effect];
      return {
        severity,
        code: finding.code,
        field: finding.pointer,
        message: `${effect}: ${finding.detail} (${finding.object})`,
        place: placeInItem(request, index, finding.pointer),
      };
    }),
  );
}
