import { doneShare, type Progress, progressText } from "./progress";
import { ShareBar } from "./share-bar";

/** How far an operation is. It has a bar only if the total is known. */
export function OperationProgress({ progress }: { progress: Progress | null }) {
  if (progress === null) return "–";
  const share = doneShare(progress);
  const text = progressText(progress);
  return (
    <span className="cached-bar" title={text}>
      {share !== null && <ShareBar share={share} />}
      <span className="secondary">{text}</span>
    </span>
  );
}
