import type { Replica } from "../../api/types";
import { OptionPicker } from "./option-picker";
import { ReplicaPicker } from "./replica-picker";
import { attemptText, containersOf, defaultAttempt, type Selection, type Target } from "./selection";

/** Another log is shown from its end: a place in one log is none in another. */
const AT_END = { at: null, time: null };

interface ReplicaChoiceProps {
  replicas: readonly Replica[];
  target: Target;
  onChange: (change: Partial<Selection>) => void;
}

/** The choice of the replica, its attempt and its container. Choices that have one option are not shown. */
export function ReplicaChoice({ replicas, target, onChange }: ReplicaChoiceProps) {
  const replica =
    target.kind === "one" ? replicas.find((each) => each.task === target.task && each.rank === target.rank) : undefined;
  return (
    <div className="log-choice">
      {replicas.length > 1 && (
        <ReplicaPicker
          replicas={replicas}
          target={target}
          onChange={(task, rank) => onChange({ task, rank, attempt: null, container: null, ...AT_END })}
        />
      )}
      {target.kind === "one" && replica !== undefined && (
        <>
          <AttemptPicker replica={replica} attempt={target.attempt} onChange={onChange} />
          <ContainerPicker replica={replica} target={target} onChange={onChange} />
        </>
      )}
    </div>
  );
}

interface AttemptPickerProps {
  replica: Replica;
  attempt: number;
  onChange: (change: Partial<Selection>) => void;
}

function AttemptPicker({ replica, attempt, onChange }: AttemptPickerProps) {
  if (replica.attempts.length < 2) return null;
  const options = replica.attempts.map((each) => ({
    id: String(each.number),
    name: attemptText(each, each.number === replica.attempt),
  }));
  return (
    <OptionPicker
      label="Attempt"
      options={options.reverse()}
      selected={String(attempt)}
      // Without a number, the page goes on to the next attempt when it begins.
      onChange={(id) => onChange({ attempt: Number(id) === defaultAttempt(replica) ? null : Number(id), ...AT_END })}
    />
  );
}

interface ContainerPickerProps {
  replica: Replica;
  target: Target & { kind: "one" };
  onChange: (change: Partial<Selection>) => void;
}

function ContainerPicker({ replica, target, onChange }: ContainerPickerProps) {
  const names = containersOf(replica, target.attempt);
  if (names.length < 2) return null;
  return (
    <OptionPicker
      label="Container"
      options={names.map((name) => ({ id: name, name }))}
      selected={target.container ?? names[0] ?? ""}
      onChange={(id) => onChange({ container: id === names[0] ? null : id, ...AT_END })}
    />
  );
}
