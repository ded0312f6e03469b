import { useCallback, useMemo, useRef, useState } from "react";
import podTemplateSchema from "../../../app/domain/data/pod_template.schema.json";
import { useAwaitedKinds, useKinds } from "../kinds/use-kinds";
import { changeRefusal, useCaller } from "../session/caller";
import { ErrorNote } from "../ui/errors";
import { loadedLater, Part } from "../ui/part";
import { problemsOf } from "./checks";
import { suggest } from "./completion";
import { parseText, type TextProblem } from "./documents";
import { withAppended } from "./draft";
import { DropArea } from "./drop-area";
import type { EditorHandle } from "./editor";
import { Outcomes } from "./outcomes";
import { Preview } from "./preview";
import { ProblemList } from "./problem-list";
import { namespacesOf, requestsOf } from "./requests";
import { SchemaReader } from "./schema";
import { Toolbar } from "./toolbar";
import { isSendable, useDryRun, useRested } from "./use-checks";
import { useDraft } from "./use-draft";
import { useSubmission } from "./use-submission";
import "./submit.css";

const Editor = loadedLater(
  () => import("./editor"),
  (module) => module.Editor,
);

const NO_PROBLEMS: readonly TextProblem[] = [];

/** Write, check, preview and submit manifests. */
export function SubmitView() {
  const { draft, edit, attempt, succeed } = useDraft();
  const kinds = useKinds();
  const awaitedKinds = useAwaitedKinds();
  const editor = useRef<EditorHandle>(null);
  const requestsFor = useCallback(
    (text: string, namespace: string) => requestsOf(parseText(text), kinds.data ?? [], namespace),
    [kinds.data],
  );

  const rested = useRested(draft);
  const parsed = useMemo(() => parseText(rested.text), [rested.text]);
  const requests = useMemo(
    () => requestsOf(parsed, kinds.data ?? [], rested.namespace),
    [parsed, kinds.data, rested.namespace],
  );
  const caller = useCaller().data;
  const refusal =
    namespacesOf(requests, rested.namespace)
      .map((namespace) => changeRefusal(caller, namespace))
      .find((each) => each !== null) ?? null;
  const isReady = isSendable(parsed) && kinds.data !== undefined && refusal === null;
  const local = useDryRun(requests, "Local", isReady);

  const [previewed, setPreviewed] = useState<{ text: string; namespace: string } | null>(null);
  const previewRequests = useMemo(
    () => (previewed === null ? [] : requestsFor(previewed.text, previewed.namespace)),
    [previewed, requestsFor],
  );
  const preview = useDryRun(previewRequests, "All", previewed !== null);

  const isCurrent = rested.text === draft.text && rested.namespace === draft.namespace;
  const isPreviewCurrent = previewed?.text === draft.text && previewed.namespace === draft.namespace;
  const hasPreview = isPreviewCurrent && preview.data !== undefined && !preview.isPlaceholderData;
  const checks = hasPreview ? preview.data : local.data;
  const problems = useMemo(() => {
    if (parsed.problems.length > 0) return parsed.problems;
    return isReady && checks !== undefined ? problemsOf(checks) : NO_PROBLEMS;
  }, [parsed, isReady, checks]);
  const isChecked = isCurrent && (!isReady || (local.data !== undefined && !local.isPlaceholderData));

  const submission = useSubmission({
    draft,
    requests: () => requestsFor(draft.text, draft.namespace),
    attempt,
    succeed,
  });
  const reader = useMemo(() => new SchemaReader(podTemplateSchema), []);
  const showPreview = () => setPreviewed({ text: draft.text, namespace: draft.namespace });
  const [revision, setRevision] = useState(0);
  /** Change the draft from outside of the editor. */
  const change = (changed: { text?: string; namespace?: string }) => {
    edit(changed);
    if (changed.text !== undefined) setRevision((present) => present + 1);
  };
  const append = (texts: readonly string[]) => change({ text: withAppended(draft.text, texts) });

  return (
    <div className="view view-page submit">
      <h1>Submit</h1>
      <p className="secondary">
        Write, paste or drop one or several manifests as YAML or JSON. The page checks them while you type; nothing is
        stored before you submit.
      </p>
      <Toolbar
        draft={draft}
        documents={parsed.documents}
        onEdit={change}
        onFiles={append}
        isSendable={isCurrent && isReady && !submission.isPending}
        isDone={submission.isDone}
        onPreview={showPreview}
        onSubmit={submission.send}
      />
      {refusal !== null && <p role="status">{refusal}</p>}
      {kinds.error !== null && <ErrorNote error={kinds.error} onRetry={() => void kinds.refetch()} />}
      {submission.error !== null && <ErrorNote error={submission.error} onRetry={submission.send} />}
      <Outcomes outcomes={submission.outcomes} isDone={submission.isDone} onAgain={submission.forget} />
      <div className="submit-columns">
        <DropArea onTexts={append}>
          <Part what="the editor">
            <Editor
              ref={editor}
              text={draft.text}
              revision={revision}
              onChange={(text) => edit({ text })}
              suggest={async (text, offset) => suggest(text, offset, await awaitedKinds(), reader)}
              problems={isChecked ? problems : NO_PROBLEMS}
            />
          </Part>
        </DropArea>
        <div className="submit-answers">
          {local.error !== null && <ErrorNote error={local.error} onRetry={() => void local.refetch()} />}
          <ProblemList
            problems={problems}
            isChecked={isChecked}
            isEmpty={parsed.documents.length === 0 && parsed.problems.length === 0}
            hasCluster={hasPreview}
            onReveal={(offset) => editor.current?.reveal(offset)}
          />
          {previewed !== null && (
            <Preview
              checks={hasPreview ? preview.data : []}
              isLoading={preview.isFetching}
              isCurrent={isPreviewCurrent}
              error={preview.error}
              onRetry={() => void preview.refetch()}
              onAgain={showPreview}
            />
          )}
        </div>
      </div>
    </div>
  );
}
