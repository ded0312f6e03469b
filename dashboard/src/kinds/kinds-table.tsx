import type { Kind } from "../api/types";
import { type DataColumn, DataTable } from "../ui/data-table";
import { ErrorNote, Loading } from "../ui/errors";
import { useKinds } from "./use-kinds";
import "./kinds.css";

/** The kinds that the gateway accepts, and which of their fields may be changed after the submission. */
export function KindsTable() {
  const kinds = useKinds();
  return (
    <section aria-labelledby="kinds">
      <h2 id="kinds">Kinds</h2>
      {kinds.error !== null && <ErrorNote error={kinds.error} onRetry={() => void kinds.refetch()} />}
      {kinds.isPending && <Loading what="the kinds" />}
      {kinds.data !== undefined && (
        <DataTable
          caption="The accepted kinds"
          columns={COLUMNS}
          rows={kinds.data}
          keyOf={(kind) => kind.kind}
          empty="The gateway accepts no kind."
        />
      )}
    </section>
  );
}

const COLUMNS: readonly DataColumn<Kind>[] = [
  { title: "Kind", cell: (kind) => <strong>{kind.kind}</strong> },
  { title: "apiVersion", cell: (kind) => <Codes values={kind.apiVersions} /> },
  { title: "Resource", cell: (kind) => <code>{kind.resource}</code> },
  { title: "Pause", cell: (kind) => (kind.supportsPause ? "yes" : "no") },
  { title: "Fields that may be changed", cell: (kind) => <Codes values={kind.mutableFields} /> },
];

function Codes({ values }: { values: readonly string[] }) {
  return (
    <ul className="codes">
      {values.map((value) => (
        <li key={value}>
          <code>{value}</code>
        </li>
      ))}
    </ul>
  );
}
