import { ToggleButton } from "react-aria-components";

interface ChipsProps {
  label: string;
  /** Whether the label is shown, because the values do not explain themselves. */
  isLabelShown?: boolean;
  values: readonly string[];
  chosen: readonly string[];
  counts?: Readonly<Record<string, string>> | undefined;
  onToggle: (value: string) => void;
  className?: (value: string) => string;
}

/** Values that the user can choose, with their counts. */
export function Chips({ label, isLabelShown = false, values, chosen, counts, onToggle, className }: ChipsProps) {
  return (
    <fieldset className="chips">
      <legend className={isLabelShown ? "field-name" : "visually-hidden"}>{label}</legend>
      {values.map((value) => (
        <ToggleButton
          key={value}
          className={`chip ${className === undefined ? "" : `tone-${className(value)}`}`}
          isSelected={chosen.includes(value)}
          onChange={() => onToggle(value)}
        >
          {value}
          {counts?.[value] !== undefined && <span className="chip-count">{counts[value]}</span>}
        </ToggleButton>
      ))}
    </fieldset>
  );
}
