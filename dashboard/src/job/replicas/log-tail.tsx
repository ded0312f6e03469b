import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Attempt, Replica } from "../../api/types";
import { usePage } from "../../page-context";
import { CodeBlock } from "../../ui/code-block";
import { ErrorNote, Loading } from "../../ui/errors";

const LINES = 20;

interface LogTailProps {
  uid: string;
  replica: Replica;
  attempt: Attempt;
  isOpen: boolean;
}

/** The last lines of the log of an attempt, which are read when the user opens them. */
export function LogTail({ uid, replica, attempt, isOpen }: LogTailProps) {
  const [isShown, setShown] = useState(isOpen);
  if (!hasLog(attempt)) return null;
  return (
    <details open={isShown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>Last log lines</summary>
      {isShown && <Lines uid={uid} replica={replica} attempt={attempt} />}
    </details>
  );
}

/** Whether a container has run. An init container that failed has a log although the attempt never started. */
export function hasLog({ startedAt, containers }: Attempt): boolean {
  return startedAt !== null || containers.some((container) => container.startedAt !== null);
}

function Lines({ uid, replica: { task, rank }, attempt: { number, outcome } }: Omit<LogTailProps, "isOpen">) {
  const { client } = usePage().api;
  const query = { task, rank, attempt: number, tailLines: LINES };
  const { data, error, refetch } = useQuery({
    // The log of an ended attempt comes from another source.
    queryKey: ["job", uid, "tail", task, rank, number, outcome],
    queryFn: async ({ signal }) => {
      const path = { uid };
      const answer = await client.GET("/api/v1/jobs/{uid}/logs", { params: { path, query }, parseAs: "text", signal });
      return answer.data ?? ""; // openapi-fetch does not parse an empty body
    },
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading what="the log" />;
  if (data === "") return <p className="secondary">The log is empty.</p>;
  return <CodeBlock label={`Last log lines of attempt ${number}`} text={data} />;
}
