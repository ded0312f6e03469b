import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { JobsView } from "./jobs/jobs-view";
import { usePage } from "./page-context";
import { hashOf, type Location } from "./routing/location";
import { navigate, useLocation } from "./routing/use-location";
import { SignIn } from "./session/sign-in";
import { useFreshness } from "./system/use-freshness";
import { FreshnessIndicator } from "./ui/freshness-indicator";
import { Help } from "./ui/help";
import { loadedLater, Part } from "./ui/part";
import { useShortcuts } from "./ui/shortcuts";

const JobView = loadedLater(
  () => import("./job/job-view"),
  (module) => module.JobView,
);
const SubmitView = loadedLater(
  () => import("./submit/submit-view"),
  (module) => module.SubmitView,
);
const CachesView = loadedLater(
  () => import("./data/caches-view"),
  (module) => module.CachesView,
);
const SetView = loadedLater(
  () => import("./data/set-view"),
  (module) => module.SetView,
);
const QueuesView = loadedLater(
  () => import("./queues/queues-view"),
  (module) => module.QueuesView,
);
const QueueView = loadedLater(
  () => import("./queues/queue-view"),
  (module) => module.QueueView,
);
const UsageView = loadedLater(
  () => import("./usage/usage-view"),
  (module) => module.UsageView,
);
const AutoscalerView = loadedLater(
  () => import("./autoscaler/autoscaler-view"),
  (module) => module.AutoscalerView,
);
const SystemView = loadedLater(
  () => import("./system/system-view"),
  (module) => module.SystemView,
);

const VIEWS = [
  ["jobs", "Jobs"],
  ["submit", "Submit"],
  ["data", "Data"],
  ["queues", "Queues"],
  ["usage", "Usage"],
  ["autoscaler", "Autoscaler"],
  ["system", "System"],
] as const;

export function App() {
  const location = useLocation();
  const [isHelpOpen, setHelpOpen] = useState(false);
  useShortcuts({
    "g j": () => navigate(["jobs"]),
    "g s": () => navigate(["submit"]),
    "g d": () => navigate(["data"]),
    "g q": () => navigate(["queues"]),
    "g u": () => navigate(["usage"]),
    "g a": () => navigate(["autoscaler"]),
    "g y": () => navigate(["system"]),
    "?": () => setHelpOpen(true),
  });
  const view = location.path[0] ?? "jobs";
  const views = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another view has another current link
  useEffect(() => showCurrent(views.current), [view]);
  return (
    <>
      <button type="button" className="skip-link" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header className="header">
        <a className="brand" href={hashOf(["jobs"])}>
          jobgate
        </a>
        <nav ref={views} aria-label="Views">
          {VIEWS.map(([name, title]) => (
            <a key={name} href={hashOf([name])} aria-current={view === name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Part what="how fresh the data is">
          <Freshness />
        </Part>
        <SignOut />
      </header>
      <main id="main" tabIndex={-1}>
        <Part what="the view" of={location.path.join("/")}>
          {viewOf(location)}
        </Part>
      </main>
      <Help isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
      <SignIn />
    </>
  );
}

/** Scroll the row of links sideways, as far as the current one is cut off; a phone has no room for all of them. */
function showCurrent(row: HTMLElement | null): void {
  const link = row?.querySelector("[aria-current]")?.getBoundingClientRect();
  const room = row?.getBoundingClientRect();
  if (row && link && room) row.scrollLeft += Math.max(0, link.right - room.right) - Math.max(0, room.left - link.left);
}

/** A part of its own: an answer about the system that it cannot read does not take the views with it. */
function Freshness() {
  useFreshness();
  return <FreshnessIndicator />;
}

function SignOut() {
  const { session } = usePage().api;
  const token = useSyncExternalStore(session.subscribe, () => session.token);
  if (token === null) return null;
  const signOut = () => {
    session.signOut();
    // The page must not show the data of the last user to the next one.
    window.location.reload();
  };
  return (
    <button type="button" className="button" onClick={signOut}>
      Sign out
    </button>
  );
}

function viewOf({ path }: Location): ReactNode {
  const [view = "jobs", first, second] = path;
  if (view === "jobs" && first !== undefined) return <JobView key={first} uid={first} tab={second} />;
  if (view === "data" && first !== undefined) return <SetView key={first} uid={first} />;
  if (view === "queues" && first !== undefined && second !== undefined) {
    return <QueueView key={`${first}/${second}`} namespace={first} name={second} />;
  }
  if (view === "jobs") return <JobsView />;
  if (view === "submit") return <SubmitView />;
  if (view === "data") return <CachesView />;
  if (view === "queues") return <QueuesView />;
  if (view === "usage") return <UsageView />;
  if (view === "autoscaler") return <AutoscalerView />;
  if (view === "system") return <SystemView />;
  return (
    <div className="empty">
      <p>This page has no view of this address.</p>
      <a href={hashOf(["jobs"])}>Jobs</a>
    </div>
  );
}
