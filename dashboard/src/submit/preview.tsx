import { useState } from "react";
import { Button } from "react-aria-components";
import type { ClusterCheck, Plan } from "../api/types";
import { CodeBlock } from "../ui/code-block";
import { type DataColumn, DataTable } from "../ui/data-table";
import { duration } from "../ui/durations";
import { ErrorNote, Loading } from "../ui/errors";
import { Fact, Facts } from "../ui/fact";
import { Warnings } from "../ui/warnings";
import { yamlOf } from "../ui/yaml";
import { type Check, type DryRunItem, EFFECTS } from "./checks";

interface PreviewProps {
  checks: readonly Check[];
  isLoading: boolean;
  /** Whether the preview is that of the present text. */
  isCurrent: boolean;
  error: Error | null;
  onRetry: () => void;
  /** Preview the present text. */
  onAgain: () => void;
}

/** What a submission would store and create, and what the cluster says about it. */
export function Preview({ checks, isLoading, isCurrent, error, onRetry, onAgain }: PreviewProps) {
  return (
    <section aria-labelledby="preview" className="preview">
      <h2 id="preview">Preview</h2>
      {!isCurrent && (
        <p>
          The text has changed since the preview.{" "}
          <Button className="button" onPress={onAgain}>
            Preview it again
          </Button>
        </p>
      )}
      {isLoading && <Loading what="the preview" />}
      {error !== null && <ErrorNote error={error} onRetry={onRetry} />}
      {(isCurrent ? checks : []).map((check) =>
        check.error === null ? (
          check.items.map((item) => (
            <Item
              key={`${check.request.namespace} ${check.request.resource} ${titleOf(item.manifest)}`}
              item={item}
              namespace={check.request.namespace}
            />
          ))
        ) : (
          <p key={`${check.request.namespace} ${check.request.resource} ${check.request.body}`}>
            The gateway refuses the manifests for <code>{check.request.namespace}</code>. The checks say why.
          </p>
        ),
      )}
    </section>
  );
}

function Item({ item, namespace }: { item: DryRunItem; namespace: string }) {
  const metadata = item.manifest.metadata as { name?: string } | undefined;
  return (
    <article>
      <h3>
        {String(item.manifest.kind)} {namespace}/{metadata?.name}
      </h3>
      <Warnings warnings={item.warnings} />
      {item.cluster && <ClusterAnswer check={item.cluster} />}
      {item.plan && <PlanTable plan={item.plan} />}
      <Source title="The manifest with its defaults" value={item.manifest} />
      {item.manifests !== undefined && (
        <>
          <h4>Kubernetes objects</h4>
          {item.manifests.map((object) => (
            <Source key={titleOf(object)} title={titleOf(object)} value={object} />
          ))}
          {(item.manifestsOmitted ?? 0) > 0 && <p className="secondary">and {item.manifestsOmitted} more like these</p>}
        </>
      )}
    </article>
  );
}

function ClusterAnswer({ check }: { check: ClusterCheck }) {
  return (
    <>
      {!check.isComplete && (
        <p>
          <strong>The cluster has not checked everything:</strong> {check.detail}
        </p>
      )}
      {check.isComplete && check.findings.length === 0 && <p>The cluster accepts the objects.</p>}
      <ul className="findings">
        {check.findings.map((finding) => (
          <li key={`${finding.object} ${finding.pointer} ${finding.code} ${finding.detail}`}>
            <strong>{EFFECTS[finding.effect][1]}</strong> ({finding.code}): {finding.detail}
            <span className="secondary">
              {" "}
              {finding.object}
              {finding.task !== null && `, task ${finding.task}`}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function PlanTable({ plan }: { plan: Plan }) {
  return (
    <>
      <DataTable
        caption="Tasks"
        columns={TASKS}
        rows={plan.tasks}
        keyOf={(task) => task.name}
        empty="The job has no task."
      />
      <Facts>
        <Fact name="Pods">{listed(plan.pods)}</Fact>
        <Fact name="Services">{listed(plan.services)}</Fact>
        <Fact name="Time to run">{limit(plan.activeDeadlineSeconds, "no limit")}</Fact>
        <Fact name="Time to wait">{limit(plan.pendingDeadlineSeconds, "the default of the gateway")}</Fact>
        <Fact name="Time with few nodes">{limit(plan.startDeadlineSeconds, "the default of the gateway")}</Fact>
        <Fact name="Objects deleted after the end">
          {limit(plan.ttlSecondsAfterFinished, "the default of the gateway")}
        </Fact>
      </Facts>
    </>
  );
}

const TASKS: readonly DataColumn<Plan["tasks"][number]>[] = [
  { title: "Task", cell: (task) => task.name },
  { title: "Replicas", cell: (task) => task.replicas },
  { title: "Restart policy", cell: (task) => task.restartPolicy },
  { title: "Restarts", cell: (task) => (task.restartLimit === null ? "no limit" : `at most ${task.restartLimit}`) },
];

/** A YAML text that is rendered only while it is open: a preview can have a hundred objects. */
function Source({ title, value }: { title: string; value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <CodeBlock label={title} text={yamlOf(value)} />}
    </details>
  );
}

const MAX_LISTED = 8;

function listed(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const shown = names.slice(0, MAX_LISTED).join(", ");
  return names.length > MAX_LISTED ? `${names.length}: ${shown}, …` : `${names.length}: ${shown}`;
}

function limit(seconds: number | null, otherwise: string): string {
  return seconds === null ? otherwise : duration(seconds * 1000);
}

function titleOf(object: Readonly<Record<string, unknown>>): string {
  const metadata = object.metadata as { name?: string } | undefined;
  return `${String(object.kind)} ${metadata?.name ?? ""}`;
}
