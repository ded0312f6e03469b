import { ArrowDown, ArrowUp } from "lucide-react";
import type { JobSummary } from "../api/types";
import { causeInShort } from "../job/explanation";
import { hashOf } from "../routing/location";
import { Actor } from "../ui/actor";
import { creatorOf } from "../ui/actors";
import { localTime } from "../ui/durations";
import { PhaseBadge } from "../ui/phases";
import { AggregateBar } from "../ui/progress";
import type { Column } from "../ui/virtual-table";
import { Age, Length } from "../ui/when";
import { type Arrangement, pressed, type SortColumn } from "./arrangement";

interface JobColumns {
  arrangement: Arrangement;
  onArrange: (arrangement: Arrangement) => void;
  selected: ReadonlyMap<string, JobSummary>;
  onSelect: (jobs: readonly JobSummary[], isSelected: boolean) => void;
}

/** The columns of the table of jobs: a box to select the row, what every job has, and the chosen labels. */
export function jobColumns({ arrangement, onArrange, selected, onSelect }: JobColumns): Column<JobSummary>[] {
  const sortable = (column: SortColumn, title: string) => ({
    title,
    order: arrangement.sort?.column === column ? orderOf(arrangement.sort) : undefined,
    heading: (
      <SortButton
        title={title}
        sort={arrangement.sort?.column === column ? arrangement.sort : null}
        onPress={() => onArrange({ ...arrangement, sort: pressed(arrangement.sort, column) })}
      />
    ),
  });
  return [
    {
      title: "Selected",
      heading: <span className="visually-hidden">Selected</span>,
      className: "column-select",
      width: "1.5rem",
      cell: (job) => (
        <input
          type="checkbox"
          aria-label={`Select ${job.name}`}
          checked={selected.has(job.uid)}
          onChange={(event) => onSelect([job], event.target.checked)}
        />
      ),
    },
    {
      ...sortable("phase", "Phase"),
      className: "column-phase",
      width: "8.5rem",
      cell: (job) => <PhaseBadge phase={job.status.phase} />,
    },
    { ...sortable("name", "Name"), className: "column-name", width: "minmax(11rem, 2fr)", cell: NameCell },
    { ...sortable("kind", "Kind"), className: "column-kind", width: "7rem", cell: KindCell },
    {
      ...sortable("owner", "Owner"),
      className: "column-owner",
      width: "8.5rem",
      cell: (job) => <Actor actor={creatorOf(job)} isShort />,
    },
    ...arrangement.labels.map((key) => ({
      title: key,
      className: "column-label",
      width: "7rem",
      cell: (job: JobSummary) => <span title={job.labels[key]}>{job.labels[key] ?? "–"}</span>,
    })),
    {
      ...sortable("replicas", "Replicas"),
      className: "column-replicas",
      width: "8.5rem",
      cell: (job) => <AggregateBar status={job.status} />,
    },
    { title: "Cause", className: "column-cause", width: "minmax(12rem, 3fr)", cell: (job) => <Cause job={job} /> },
    {
      ...sortable("duration", "Duration"),
      className: "column-time",
      width: "6rem",
      cell: (job) => <Length start={job.status.startedAt} end={job.status.finishedAt} />,
    },
    {
      ...sortable("age", "Age"),
      className: "column-time",
      width: "4.5rem",
      cell: (job) => <Age createdAt={job.createdAt} />,
    },
  ];
}

function NameCell(job: JobSummary) {
  return (
    <>
      <a href={hashOf(["jobs", job.uid])}>{job.name}</a>
      <span className="secondary">
        {job.namespace}
        {job.importedAt !== null && (
          <span title={`Imported from an export ${localTime(job.importedAt)}`}>, imported</span>
        )}
      </span>
    </>
  );
}

/** The kind and the queue. The queue leads to its jobs. */
function KindCell({ kind, namespace, status: { queue } }: JobSummary) {
  return (
    <>
      {kind}
      {queue !== null && (
        <a
          className="secondary"
          title={`Queue ${queue.name}: ${queue.admitted ? "admitted" : "not admitted"}`}
          href={hashOf(["jobs"], { namespace, queue: queue.name })}
        >
          in {queue.name}
        </a>
      )}
    </>
  );
}

/** The cause of the phase. Its title has all that the status says. */
function Cause({ job }: { job: JobSummary }) {
  const text = causeInShort(job);
  const { message } = job.status;
  return <span title={message === "" || message === text ? text : `${text}\n${message}`}>{text}</span>;
}

interface SortButtonProps {
  title: string;
  sort: Arrangement["sort"];
  onPress: () => void;
}

function SortButton({ title, sort, onPress }: SortButtonProps) {
  const Icon = sort?.isDescending ? ArrowDown : ArrowUp;
  return (
    <button type="button" className="sort-button" onClick={onPress}>
      {title}
      {sort !== null && <Icon aria-hidden size={12} />}
    </button>
  );
}

function orderOf(sort: NonNullable<Arrangement["sort"]>) {
  return sort.isDescending ? ("descending" as const) : ("ascending" as const);
}
