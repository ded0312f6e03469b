import { hashOf } from "../../routing/location";
import { useLocation } from "../../routing/use-location";
import { replicaName } from "../names";
import { withSelection } from "./selection";

interface ReplicaLinkProps {
  task: string | null;
  rank: number | null;
  attempt?: number | null;
}

/** A link that shows the details of a replica over the present view; nothing for what concerns the whole job. */
export function ReplicaLink({ task, rank, attempt = null }: ReplicaLinkProps) {
  const { path, query } = useLocation();
  if (task === null || rank === null) return task ?? "";
  return (
    <>
      <a href={hashOf(path, withSelection(query, { task, rank, attempt }))}>{replicaName(task, rank)}</a>
      {attempt !== null && <span className="secondary"> attempt {attempt}</span>}
    </>
  );
}
