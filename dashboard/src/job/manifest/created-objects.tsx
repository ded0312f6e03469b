import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "react-aria-components";
import { bodyOf } from "../../api/client";
import type { Job } from "../../api/types";
import { usePage } from "../../page-context";
import { CodeBlock } from "../../ui/code-block";
import { ErrorNote, Loading } from "../../ui/errors";
import { yamlOf } from "../../ui/yaml";
import { pageParameters } from "../reads";
import { useReplicas } from "../use-job-query";
import { titleOf } from "./titles";

type KubernetesObject = Readonly<Record<string, unknown>>;

const PAGE_SIZE = 50;

/** The objects that jobgate creates from the manifest, in pages, all or those of one task. */
export function CreatedObjects({ job }: { job: Job }) {
  const [task, setTask] = useState("");
  const { client } = usePage().api;
  const query = useInfiniteQuery({
    // An edit of the job changes them; a change of its status does not.
    queryKey: ["job", job.uid, "manifests", job.generation, task],
    queryFn: async ({ pageParam, signal }) => {
      const parameters = { ...pageParameters(pageParam, PAGE_SIZE), ...(task !== "" && { task }) };
      const params = { path: { uid: job.uid }, query: parameters };
      return bodyOf(await client.GET("/api/v1/jobs/{uid}/manifests", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextPageToken,
  });
  const { data, error, refetch } = query;
  const objects = data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <section>
      <h2>Objects</h2>
      <p className="secondary">What jobgate creates in the cluster from this manifest, in this order.</p>
      <TaskSelect uid={job.uid} task={task} onChange={setTask} />
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading what="the objects" />}
      {objects.map((object) => (
        <ObjectDetails key={titleOf(object)} object={object} />
      ))}
      {query.hasNextPage && (
        <Button className="button" isDisabled={query.isFetchingNextPage} onPress={() => void query.fetchNextPage()}>
          More objects
        </Button>
      )}
    </section>
  );
}

function TaskSelect({ uid, task, onChange }: { uid: string; task: string; onChange: (task: string) => void }) {
  const tasks = new Set(useReplicas(uid).data?.map((replica) => replica.task));
  return (
    <label className="field">
      <span className="field-name">Task</span>
      <select value={task} onChange={(event) => onChange(event.target.value)}>
        <option value="">all objects</option>
        {[...tasks].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function ObjectDetails({ object }: { object: KubernetesObject }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="job-object" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{titleOf(object)}</summary>
      {isOpen && <CodeBlock label={titleOf(object)} text={yamlOf(object)} />}
    </details>
  );
}
