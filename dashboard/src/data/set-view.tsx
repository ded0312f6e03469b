import type { ReactNode } from "react";
import { bodyOf } from "../api/client";
import type { SampleSet } from "../api/types";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { actorText, creatorOf } from "../ui/actors";
import { CodeBlock } from "../ui/code-block";
import { DeleteButton } from "../ui/delete-button";
import { ErrorNote, Loading } from "../ui/errors";
import { Fact, Facts } from "../ui/fact";
import { PhaseBadge } from "../ui/phases";
import { Warnings } from "../ui/warnings";
import { When } from "../ui/when";
import { manifestOf, yamlOf } from "../ui/yaml";
import { CachedBar } from "./cached-bar";
import { DependentTables } from "./dependents";
import { NodeTable } from "./node-table";
import { OperationProgress } from "./operation-progress";
import { ConditionTable, EventTable, HistoryTable } from "./records";
import { cacheFacts, phaseText, removalText, syncName } from "./set-facts";
import { Message, serversText } from "./sets-table";
import { useSet, useSetEvents, useSetHistory } from "./use-set";
import "./data.css";

/** A sample set: its phase and cause, its cache, what uses it, and what happened to it. */
export function SetView({ uid }: { uid: string }) {
  const { data, error, refetch } = useSet(uid);
  const history = useSetHistory(uid);
  const events = useSetEvents(uid);
  return (
    <div className="view view-page set-view">
      <a href={hashOf(["data"])}>All sample sets</a>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the sample set" />}
      {data !== undefined && (
        <>
          <Header set={data.object} etag={data.etag} onChanged={() => void refetch()} />
          <Warnings warnings={data.object.status.warnings} />
          <Cache set={data.object} />
          <Section title="Nodes">
            <NodeTable set={data.object} />
          </Section>
          <DependentTables uid={uid} set={data.object} />
          <Section title="Conditions">
            <ConditionTable conditions={data.object.conditions} />
          </Section>
          <Section title="History">
            {history.error !== null && <ErrorNote error={history.error} onRetry={() => void history.refetch()} />}
            {history.data !== undefined && <HistoryTable entries={history.data} />}
          </Section>
          <Section title="Events">
            {events.error !== null && <ErrorNote error={events.error} onRetry={() => void events.refetch()} />}
            {events.data !== undefined && <EventTable events={events.data} />}
          </Section>
          <Section title="Manifest">
            <CodeBlock label="Manifest" text={yamlOf(manifestOf(data.object))} />
          </Section>
        </>
      )}
    </div>
  );
}

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Header({ set, etag, onChanged }: { set: SampleSet; etag: string; onChanged: () => void }) {
  const { client } = usePage().api;
  const { status, deletedAt, name, namespace } = set;
  const remove = async () => {
    const params = { path: { namespace, name }, header: { "If-Match": etag } };
    bodyOf(await client.DELETE("/api/v1/namespaces/{namespace}/samplesets/{name}", { params }));
    onChanged();
  };
  return (
    <>
      <div className="object-header">
        <h1>
          {name} <span className="secondary">{namespace}</span>
        </h1>
        {deletedAt === null && (
          <DeleteButton
            what={`the sample set ${name}`}
            namespace={namespace}
            consequences={CONSEQUENCES}
            onDelete={remove}
            onChanged={onChanged}
          />
        )}
      </div>
      <p className="object-phase">
        <PhaseBadge phase={deletedAt === null ? status.phase : "Deleted"} />
        <span>{deletedAt === null ? phaseText(status.phase) : removalText(status.removal)}</span>
      </p>
      {(status.reason !== "" || status.message !== "") && (
        <p className="object-cause">
          <Message {...status} />
        </p>
      )}
      <p className="secondary object-submitted">
        Submitted <When time={set.createdAt} /> by {actorText(creatorOf(set))}
        {deletedAt !== null && (
          <>
            ; deleted <When time={deletedAt} />
          </>
        )}
        .
      </p>
    </>
  );
}

const CONSEQUENCES = [
  "Its runtime servers, Service, claim and volume are deleted, and the caches of the nodes are cleared.",
  "The removal waits until no pod names the claim. Jobs that mount it keep running until then.",
  "Sample jobs of the set that have not ended fail.",
  "The data remains in the storage. The name is free when the removal is complete.",
] as const;

function Cache({ set }: { set: SampleSet }) {
  const { cache, runtime, phase, sync: progress } = set.status;
  const sync = syncName(set.nativeStatus);
  return (
    <Section title="Cache">
      <Facts>
        <Fact name="Cached">
          <CachedBar cache={cache} />
        </Fact>
        {cache !== null && (
          <Fact name="Measured">
            <When time={cache.observedAt} />, the sum over all nodes
          </Fact>
        )}
        <Fact name="Runtime servers">{serversText(runtime)}, one for each node</Fact>
        {cacheFacts(set.nativeStatus).map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
        {sync !== null && <Fact name="Sync of the set">{sync}</Fact>}
        {phase === "Syncing" && (
          <Fact name="Copied so far">
            {progress === null ? "its server reports no progress now" : <OperationProgress progress={progress} />}
          </Fact>
        )}
      </Facts>
    </Section>
  );
}
