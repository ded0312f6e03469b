import { useInfiniteQuery } from "@tanstack/react-query";
import { Button } from "react-aria-components";
import { bodyOf } from "../../api/client";
import { ApiError } from "../../api/problems";
import type { Job } from "../../api/types";
import { usePage } from "../../page-context";
import { type DataColumn, DataTable } from "../../ui/data-table";
import { ErrorNote, Loading } from "../../ui/errors";
import { When } from "../../ui/when";
import { hasEnded } from "../names";
import { pageParameters } from "../reads";
import { decisionsAbout, type RepeatedDecision } from "./decisions";

const RUNS = 100;
/** No stream announces the runs of the autoscaler. Milliseconds between two reads while the job is live. */
const PERIOD = 15_000;

/** What the autoscaler decided about this job in its last runs. */
export function AutoscalerDecisions({ job }: { job: Job }) {
  const { client } = usePage().api;
  const query = useInfiniteQuery({
    queryKey: ["autoscaler", "runs", job.uid],
    queryFn: async ({ pageParam, signal }) =>
      bodyOf(await client.GET("/api/v1/autoscaler", { params: { query: pageParameters(pageParam, RUNS) }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextPageToken,
    refetchInterval: hasEnded(job) ? false : PERIOD,
  });
  const { data, error, refetch } = query;
  if (error instanceof ApiError && error.status === 403) return null;
  const runs = data?.pages.flatMap((page) => page.items) ?? [];
  const newest = data?.pages[0];
  return (
    <section>
      <h2>Decisions of the autoscaler</h2>
      {newest !== undefined && newest.items.length > 0 && (
        <p className="secondary">
          {newest.enabled ? "The autoscaler resizes jobs." : "The autoscaler is off: it only records what it would do."}{" "}
          These are its decisions about this job in its last {runs.length} runs, the newest first.
        </p>
      )}
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the decisions" />}
      {data !== undefined && (
        <DataTable
          caption="Decisions of the autoscaler, the newest first"
          columns={COLUMNS}
          rows={decisionsAbout(job.uid, runs)}
          keyOf={({ decision, until }) => `${until} ${decision.task}`}
          empty="The autoscaler has decided nothing about this job in these runs."
        />
      )}
      {query.hasNextPage && (
        <Button className="button" isDisabled={query.isFetchingNextPage} onPress={() => void query.fetchNextPage()}>
          Earlier runs
        </Button>
      )}
    </section>
  );
}

const COLUMNS: readonly DataColumn<RepeatedDecision>[] = [
  { title: "Time", className: "time", cell: ({ until }) => <When time={until} /> },
  { title: "Task", cell: ({ decision }) => decision.task },
  { title: "Size", cell: ({ decision }) => sizes(decision) },
  { title: "Verdict", cell: ({ decision }) => decision.verdict },
  { title: "Why", className: "wrap", cell: ({ decision }) => decision.message },
  {
    title: "Applied",
    className: "wrap",
    cell: ({ decision }) => decision.refusal ?? (decision.applied ? "yes" : "no"),
  },
  { title: "Runs", cell: ({ runs }) => runs },
];

function sizes({ fromReplicas, toReplicas, minReplicas, maxReplicas }: RepeatedDecision["decision"]): string {
  const change = fromReplicas === toReplicas ? `${fromReplicas}` : `${fromReplicas} → ${toReplicas}`;
  return `${change} (${minReplicas} to ${maxReplicas})`;
}
