import { useEffect } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { ApiError } from "../api/problems";
import type { Job } from "../api/types";
import { hashOf } from "../routing/location";
import { navigate } from "../routing/use-location";
import { ErrorNote, Loading } from "../ui/errors";
import { Part } from "../ui/part";
import { useShortcuts } from "../ui/shortcuts";
import { EventsTab } from "./events-tab";
import { HistoryTab } from "./history-tab";
import "./job.css";
import { JobHeader } from "./job-header";
import { LogsTab } from "./logs/logs-tab";
import { ManifestTab } from "./manifest/manifest-tab";
import { Overview } from "./overview/overview";
import { ReplicaDrawer } from "./replicas/replica-drawer";
import { ReplicasTab } from "./replicas/replicas-tab";
import { ScalingTab } from "./scaling/scaling-tab";
import { useJob } from "./use-job-query";

const TABS = [
  ["overview", "Overview", Overview],
  ["replicas", "Replicas", ReplicasTab],
  ["logs", "Logs", LogsTab],
  ["history", "History", HistoryTab],
  ["events", "Events", EventsTab],
  ["scaling", "Scaling", ScalingTab],
  ["manifest", "Manifest", ManifestTab],
] as const;

/** Tabs that scroll their content themselves. */
const FILLING: readonly string[] = ["replicas", "logs"];

export function JobView({ uid, tab }: { uid: string; tab: string | undefined }) {
  const { data, error, refetch } = useJob(uid);
  useShortcuts({ l: () => navigate(["jobs", uid, "logs"]) });
  useTitle(data?.job.name);
  if (data === undefined) {
    if (error === null) return <Loading what="the job" />;
    return isAbsent(error) ? <NoJob uid={uid} /> : <ErrorNote error={error} onRetry={() => void refetch()} />;
  }
  const { job, etag } = data;
  const selected = TABS.some(([name]) => name === tab) ? (tab ?? "overview") : "overview";
  return (
    <div className="job-view" data-fills={FILLING.includes(selected) || undefined}>
      <JobHeader job={job} etag={etag} />
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      <JobTabs job={job} selected={selected} />
      <ReplicaDrawer job={job} />
    </div>
  );
}

function JobTabs({ job, selected }: { job: Job; selected: string }) {
  return (
    <Tabs className="job-tabs" selectedKey={selected}>
      <TabList aria-label="Parts of the job" className="job-tab-list">
        {TABS.map(([name, title]) => (
          <Tab
            key={name}
            id={name}
            className="job-tab"
            href={hashOf(name === "overview" ? ["jobs", job.uid] : ["jobs", job.uid, name])}
          >
            {title}
          </Tab>
        ))}
      </TabList>
      {TABS.map(([name, , Content]) => (
        <TabPanel key={name} id={name} className="job-panel">
          <Part what="the tab">
            <Content job={job} />
          </Part>
        </TabPanel>
      ))}
    </Tabs>
  );
}

function NoJob({ uid }: { uid: string }) {
  return (
    <div className="empty">
      <h1>No such job</h1>
      <p>
        No job has the uid <code>{uid}</code>, or its record was deleted when its time was over, or the token of this
        page does not reach its namespace.
      </p>
      <a href={hashOf(["jobs"])}>Jobs</a>
    </div>
  );
}

/** Whether no job can have this uid. The gateway answers 400 to what is no uid. */
function isAbsent(error: Error): boolean {
  return error instanceof ApiError && [400, 404, 410].includes(error.status);
}

function useTitle(name: string | undefined): void {
  useEffect(() => {
    if (name === undefined) return;
    document.title = `${name} · jobgate`;
    return () => {
      document.title = "jobgate";
    };
  }, [name]);
}
