import { X } from "lucide-react";
import { Button, Heading } from "react-aria-components";
import type { Job } from "../../api/types";
import { replaceQuery, useLocation } from "../../routing/use-location";
import { ErrorNote, Loading } from "../../ui/errors";
import { Window } from "../../ui/window";
import { replicaName } from "../names";
import { useReplicas } from "../use-job-query";
import { ReplicaDetails } from "./replica-details";
import "./replicas.css";
import { type Selection, selectionOf, withSelection } from "./selection";

/** The details of the replica that the address selects, at the side of the view. */
export function ReplicaDrawer({ job }: { job: Job }) {
  const { query } = useLocation();
  const selection = selectionOf(query);
  const close = () => replaceQuery(withSelection(query, null));
  return (
    <Window isOpen={selection !== null} onClose={close} overlayClassName="job-drawer-overlay" className="job-drawer">
      {selection !== null && (
        <>
          <div className="job-drawer-head">
            <Heading slot="title" className="job-drawer-title">
              {replicaName(selection.task, selection.rank)}
            </Heading>
            <Button slot="close" className="button job-icon-button" aria-label="Close">
              <X aria-hidden size={16} />
            </Button>
          </div>
          <Selected job={job} selection={selection} />
        </>
      )}
    </Window>
  );
}

function Selected({ job, selection }: { job: Job; selection: Selection }) {
  const { data, error, refetch } = useReplicas(job.uid);
  const { task, rank, attempt } = selection;
  const replica = data?.find((each) => each.task === task && each.rank === rank);
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the replica" />}
      {data !== undefined && replica === undefined && <p>The job has no such replica.</p>}
      {replica !== undefined && <ReplicaDetails job={job} replica={replica} attempt={attempt} />}
    </>
  );
}
