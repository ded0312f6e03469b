import { ChevronDown } from "lucide-react";
import { Button, Label, ListBox, ListBoxItem, Popover, Select, SelectValue } from "react-aria-components";

interface OptionPickerProps {
  label: string;
  options: readonly { id: string; name: string }[];
  selected: string;
  onChange: (id: string) => void;
}

/** A choice of one of a few options. */
export function OptionPicker({ label, options, selected, onChange }: OptionPickerProps) {
  return (
    <Select className="log-field" value={selected} onChange={(key) => key !== null && onChange(String(key))}>
      <Label className="field-name">{label}</Label>
      <Button className="button log-select">
        <SelectValue />
        <ChevronDown aria-hidden size={14} />
      </Button>
      <Popover className="log-popover">
        <ListBox items={options} className="log-options">
          {({ id, name }) => (
            <ListBoxItem id={id} textValue={name} className="log-option">
              {name}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </Select>
  );
}
