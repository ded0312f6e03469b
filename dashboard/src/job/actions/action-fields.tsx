import { Button, FieldError, Group, Input, Label, NumberField, Text, TextField } from "react-aria-components";
import type { Job } from "../../api/types";
import type { ActionInput } from "./effects";
import type { Action } from "./permitted";
import { sizeError } from "./sizes";

interface ActionFieldsProps {
  action: Action;
  job: Job;
  input: ActionInput;
  onChange: (input: ActionInput) => void;
}

/** What the user enters for an action: sizes, a name, a reason. */
export function ActionFields({ action, job, input, onChange }: ActionFieldsProps) {
  if (action === "retry") {
    return (
      <TextField value={input.name} onChange={(name) => onChange({ ...input, name: name.trim() })} autoFocus>
        <Label>Name of the new job</Label>
        <Input placeholder={`${job.name}-…`} maxLength={63} />
        <Text slot="description">Optional. By default the name of this job with a random suffix.</Text>
      </TextField>
    );
  }
  return (
    <>
      {action === "scale" && <Sizes job={job} input={input} onChange={onChange} />}
      <TextField
        value={input.reason}
        onChange={(reason) => onChange({ ...input, reason })}
        maxLength={1024}
        autoFocus={action !== "scale"}
      >
        <Label>Reason</Label>
        <Input />
        <Text slot="description">Optional. The history of the job shows it.</Text>
      </TextField>
    </>
  );
}

function Sizes({ job, input, onChange }: Omit<ActionFieldsProps, "action">) {
  return Object.entries(job.scaling).map(([task, { replicas, min, max }], index) => {
    const size = input.sizes[task] ?? replicas;
    const error = sizeError(job, task, size);
    const change = (wanted: number) => onChange({ ...input, sizes: { ...input.sizes, [task]: wanted } });
    return (
      <NumberField
        key={task}
        className="size"
        value={size}
        onChange={change}
        isInvalid={error !== ""}
        isDisabled={min === max}
        isWheelDisabled
        formatOptions={{ useGrouping: false, maximumFractionDigits: 0 }}
        autoFocus={index === 0}
      >
        <Label>Replicas of {task}</Label>
        <Group className="size-field">
          <Button slot="decrement" className="button">
            −
          </Button>
          {/* The field itself reports a typed number only when it loses the focus. */}
          <Input
            onInput={(event) => /^\d+$/.test(event.currentTarget.value) && change(Number(event.currentTarget.value))}
          />
          <Button slot="increment" className="button">
            +
          </Button>
        </Group>
        <Text slot="description">
          {replicas} now; {min === max ? "fixed" : `${min} to ${max}`}
        </Text>
        <FieldError>{error}</FieldError>
      </NumberField>
    );
  });
}
