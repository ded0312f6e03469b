import { ChevronDown } from "lucide-react";
import { useMemo, useState } from "react";
import { Button, ComboBox, Group, Input, Label, ListBox, ListBoxItem, Popover } from "react-aria-components";
import type { Replica } from "../../api/types";
import { thousands } from "../../ui/numbers";
import { PhaseBadge } from "../../ui/phases";
import { replicaName } from "../names";
import { matchingReplicas, type Target, tasksOf } from "./selection";

/** Replicas that the list shows at once. The reader finds others by typing. */
const LISTED = 100;

interface Choice {
  id: string;
  name: string;
  /** Null for the replicas of a task, or of the job, together. */
  replica: Replica | null;
  task: string | null;
}

interface ReplicaPickerProps {
  replicas: readonly Replica[];
  target: Target;
  onChange: (task: string | null, rank: number | null) => void;
}

/** The choice of the replica whose log is read, or of several together. Typing searches names, phases and nodes. */
export function ReplicaPicker({ replicas, target, onChange }: ReplicaPickerProps) {
  const together = useMemo(() => togetherOf(replicas), [replicas]);
  const selected = target.kind === "merged" ? idOf(target.task, null) : idOf(target.task, target.rank);
  /** Null while the reader does not type: the field shows the selected choice. */
  const [text, setText] = useState<string | null>(null);
  const found = useMemo(() => matchingReplicas(replicas, text ?? ""), [replicas, text]);
  const choices = [...together, ...found.slice(0, LISTED).map(choiceOf)];
  const known = choices.find((choice) => choice.id === selected);
  const chosen = known ?? replicas.map(choiceOf).find((choice) => choice.id === selected);
  // The field needs the selected choice for its text.
  if (known === undefined && chosen !== undefined) choices.push(chosen);
  const selectedName = chosen?.name ?? "";
  return (
    <ComboBox
      className="log-field"
      items={choices}
      value={selected}
      inputValue={text ?? selectedName}
      onInputChange={(typed) => setText(typed === selectedName ? null : typed)}
      onBlur={() => setText(null)}
      onChange={(key) => {
        const choice = choices.find((each) => each.id === key);
        setText(null);
        if (choice !== undefined && choice.id !== selected) onChange(choice.task, choice.replica?.rank ?? null);
      }}
      menuTrigger="focus"
    >
      <Label className="field-name">Replica</Label>
      <Group className="log-combo">
        {/* React Aria also sends the event while the reader types. */}
        <Input onFocus={(event) => text === null && event.currentTarget.select()} />
        <Button className="log-combo-button" aria-label="Show replicas">
          <ChevronDown aria-hidden size={14} />
        </Button>
      </Group>
      <Popover className="log-popover">
        <ListBox<Choice> className="log-options">
          {({ id, name, replica }) => (
            <ListBoxItem id={id} textValue={name} className="log-option">
              <span>{name}</span>
              {replica !== null && <PhaseBadge phase={replica.phase} />}
            </ListBoxItem>
          )}
        </ListBox>
        {found.length > LISTED && (
          <p className="log-options-more secondary">{thousands(found.length - LISTED)} more: type to search</p>
        )}
      </Popover>
    </ComboBox>
  );
}

function choiceOf(replica: Replica): Choice {
  const { task, rank } = replica;
  return { id: idOf(task, rank), name: replicaName(task, rank), replica, task };
}

/** Return the choices of several replicas together: of all, and of each task. */
function togetherOf(replicas: readonly Replica[]): Choice[] {
  const tasks = tasksOf(replicas);
  const all = { id: idOf(null, null), name: `All ${thousands(replicas.length)} replicas`, replica: null, task: null };
  if (tasks.length === 1) return [all];
  const several = tasks.filter((task) => replicas.filter((replica) => replica.task === task).length > 1);
  return [all, ...several.map((task) => ({ id: idOf(task, null), name: `All of ${task}`, replica: null, task }))];
}

function idOf(task: string | null, rank: number | null): string {
  return JSON.stringify([task, rank]);
}
