import { CircleAlert, CircleCheck } from "lucide-react";
import { KindsTable } from "../kinds/kinds-table";
import { hashOf } from "../routing/location";
import { useCaller } from "../session/caller";
import { ErrorNote, Loading } from "../ui/errors";
import { useNow } from "../ui/now";
import { callerFacts, type Fact, type FactGroup, factsOf } from "./facts";
import { useSystem } from "./use-freshness";
import "./system.css";

/** The state of the installation in words, who the user is, and which kinds are accepted. */
export function SystemView() {
  const system = useSystem();
  const caller = useCaller();
  const now = useNow();
  const groups = system.data === undefined ? [] : factsOf(system.data, now);
  const bad = groups.flatMap((group) => group.facts).filter((fact) => fact.state === "bad");
  return (
    <div className="view view-page system">
      <h1>System</h1>
      <p className="secondary">
        The state of the installation, with what each value means. The decisions of the autoscaler are in{" "}
        <a href={hashOf(["autoscaler"])}>Autoscaler</a>.
      </p>
      {system.error !== null && <ErrorNote error={system.error} onRetry={() => void system.refetch()} />}
      {system.isPending && <Loading what="the state of the system" />}
      {system.data !== undefined && <Summary bad={bad} />}
      {groups.map((group) => (
        <FactTable key={group.title} group={group} />
      ))}
      {caller.error !== null && <ErrorNote error={caller.error} onRetry={() => void caller.refetch()} />}
      {caller.data !== undefined && <FactTable group={callerFacts(caller.data, now)} />}
      <KindsTable />
      <p className="secondary">
        This page contains the work of others: <a href="notices.txt">their licences</a>.
      </p>
    </div>
  );
}

function Summary({ bad }: { bad: readonly Fact[] }) {
  if (bad.length === 0) {
    return (
      <p className="badge tone-succeeded" role="status">
        <CircleCheck aria-hidden size={16} /> Everything works.
      </p>
    );
  }
  return (
    <div className="note tone-failed" role="status">
      <CircleAlert aria-hidden size={16} />
      <ul>
        {bad.map((fact) => (
          <li key={fact.name}>
            <strong>
              {fact.name}: {fact.value}.
            </strong>{" "}
            {fact.remedy}
          </li>
        ))}
      </ul>
    </div>
  );
}

function FactTable({ group }: { group: FactGroup }) {
  return (
    <section aria-label={group.title}>
      <h2>{group.title}</h2>
      <dl className="system-facts">
        {group.facts.map((fact) => (
          <div key={fact.name}>
            <dt>{fact.name}</dt>
            <dd>
              <FactValue fact={fact} />
            </dd>
            <dd className="secondary">
              {fact.meaning} {fact.remedy}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function FactValue({ fact }: { fact: Fact }) {
  if (fact.state === "plain") return fact.value;
  const isGood = fact.state === "good";
  return (
    <span className={`fact-value tone-${isGood ? "succeeded" : "failed"}`}>
      {isGood ? <CircleCheck aria-label="good" size={14} /> : <CircleAlert aria-label="bad" size={14} />}
      <span>{fact.value}</span>
    </span>
  );
}
