import { Button, Heading } from "react-aria-components";
import { bodyOf } from "../api/client";
import type { SampleJob } from "../api/types";
import { usePage } from "../page-context";
import { actorText, creatorOf } from "../ui/actors";
import { CodeBlock } from "../ui/code-block";
import { DeleteButton } from "../ui/delete-button";
import { ErrorNote, Loading } from "../ui/errors";
import { Fact, Facts } from "../ui/fact";
import { PhaseBadge } from "../ui/phases";
import { Warnings } from "../ui/warnings";
import { Length, When } from "../ui/when";
import { Window } from "../ui/window";
import { manifestOf, yamlOf } from "../ui/yaml";
import { OperationProgress } from "./operation-progress";
import { ConditionTable, HistoryTable } from "./records";
import { Message } from "./sets-table";
import { useSampleJob, useSampleJobHistory } from "./use-set";

/** A sample job: its phase and cause, its conditions and its history. */
export function SampleJobDialog({ uid, onClose }: { uid: string; onClose: () => void }) {
  const { data, error, refetch } = useSampleJob(uid);
  return (
    <Window onClose={onClose} className="modal wide-modal">
      <Heading slot="title">{data === undefined ? "Sample job" : `Sample job ${data.object.name}`}</Heading>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the sample job" />}
      {data !== undefined && <Details job={data.object} etag={data.etag} onChanged={() => void refetch()} />}
      <div className="dialog-buttons">
        <Button slot="close" className="button">
          Close
        </Button>
      </div>
    </Window>
  );
}

function Details({ job, etag, onChanged }: { job: SampleJob; etag: string; onChanged: () => void }) {
  const { client } = usePage().api;
  const history = useSampleJobHistory(job.uid);
  const { status, namespace, name } = job;
  const remove = async () => {
    const params = { path: { namespace, name }, header: { "If-Match": etag } };
    bodyOf(await client.DELETE("/api/v1/namespaces/{namespace}/samplejobs/{name}", { params }));
    onChanged();
  };
  return (
    <>
      <Facts>
        <Fact name="Phase">
          <PhaseBadge phase={job.deletedAt === null ? status.phase : "Deleted"} /> <Message {...status} />
        </Fact>
        <Fact name="Operation">
          {status.type} of the sample set {namespace}/{status.sampleSet}
        </Fact>
        <Fact name="Submitted">
          <When time={job.createdAt} /> by {actorText(creatorOf(job))}
        </Fact>
        <Fact name="Duration">
          <Length start={status.startedAt} end={status.finishedAt} />
        </Fact>
        <Fact name="Progress">
          {status.progress === null ? "not reported" : <OperationProgress progress={status.progress} />}
        </Fact>
        <Fact name="Name at the servers">{status.jobName ?? "not posted yet"}</Fact>
      </Facts>
      <Warnings warnings={status.warnings} />
      <h3>Conditions</h3>
      <ConditionTable conditions={job.conditions} />
      <h3>History</h3>
      {history.error !== null && <ErrorNote error={history.error} onRetry={() => void history.refetch()} />}
      {history.data !== undefined && <HistoryTable entries={history.data} />}
      <h3>Manifest</h3>
      <CodeBlock label="Manifest" text={yamlOf(manifestOf(job))} />
      {job.deletedAt === null && (
        <DeleteButton
          what={`the sample job ${name}`}
          namespace={namespace}
          consequences={["Its record is deleted. Work that the runtime servers have begun is not undone."]}
          onDelete={remove}
          onChanged={onChanged}
        />
      )}
    </>
  );
}
