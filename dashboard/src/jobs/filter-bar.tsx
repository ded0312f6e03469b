import { Search, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Button, Input, Label, SearchField } from "react-aria-components";
import { Chips } from "../ui/chips";
import { toneOf } from "../ui/phases";
import { useShortcuts } from "../ui/shortcuts";
import { TextFilter } from "../ui/text-filter";
import type { Arrangement } from "./arrangement";
import { type Filters, isFiltered, type ManyFilter, ME, NO_FILTERS, PERIODS, toggled } from "./filters";
import { useCounts } from "./use-counts";
import { JOB_KINDS, JOB_PHASES } from "./vocabulary";

/** What the chip of the user's own jobs says. */
const MINE = "mine";

interface FilterBarProps {
  filters: Filters;
  arrangement: Arrangement;
  /** `isTyping`: the text is not complete, so it gets no entry of its own in the browser's history. */
  onChange: (filters: Filters, isTyping?: boolean) => void;
  onArrange: (arrangement: Arrangement) => void;
}

/** The filters of the table. The counts by phase and kind are filters too. */
export function FilterBar({ filters, arrangement, onChange, onArrange }: FilterBarProps) {
  const counts = useCounts(filters);
  const toggle = (name: ManyFilter) => (value: string) => onChange(toggled(filters, name, value));
  return (
    <search className="filters">
      <div className="filter-fields">
        <SearchText value={filters.text} onChange={(text, isTyping) => onChange({ ...filters, text }, isTyping)} />
        <TextFilter
          name="Label selector"
          hint="team=vision"
          value={filters.label}
          onChange={(label) => onChange({ ...filters, label })}
        />
        <TextFilter
          name="Namespaces"
          hint="all"
          value={filters.namespace.join(",")}
          onChange={(text) => onChange({ ...filters, namespace: text.split(/[\s,]+/).filter(Boolean) })}
        />
        <TextFilter
          name="Label columns"
          className="label-columns"
          hint="team, stage"
          value={arrangement.labels.join(",")}
          onChange={(text) => onArrange({ ...arrangement, labels: [...new Set(text.split(/[\s,]+/).filter(Boolean))] })}
        />
        <Button className="button" isDisabled={!isFiltered(filters)} onPress={() => onChange(NO_FILTERS)}>
          <X aria-hidden size={14} /> Clear
        </Button>
      </div>
      <div className="filter-chips">
        <Chips
          label="Phase"
          values={JOB_PHASES.filter((phase) => filters.phase.includes(phase) || counts?.phases[phase] !== "0")}
          chosen={filters.phase}
          counts={counts?.phases}
          onToggle={toggle("phase")}
          className={toneOf}
        />
      </div>
      <div className="filter-chips">
        <Chips label="Kind" values={JOB_KINDS} chosen={filters.kind} counts={counts?.kinds} onToggle={toggle("kind")} />
        <Chips
          label="Owner"
          values={filters.owner === "" || filters.owner === ME ? [MINE] : [MINE, filters.owner]}
          chosen={[filters.owner === ME ? MINE : filters.owner]}
          onToggle={(value) => {
            const owner = value === MINE ? ME : value;
            onChange({ ...filters, owner: owner === filters.owner ? "" : owner });
          }}
        />
        {filters.queue !== "" && (
          <Chips
            label="Queue"
            isLabelShown
            values={[filters.queue]}
            chosen={[filters.queue]}
            onToggle={() => onChange({ ...filters, queue: "" })}
          />
        )}
        <Chips
          label="Submitted within"
          isLabelShown
          values={Object.keys(PERIODS)}
          chosen={[filters.since]}
          onToggle={(since) => onChange({ ...filters, since: since === filters.since ? "" : since })}
        />
      </div>
    </search>
  );
}

/** The search field. It searches while the user types, a moment after the last key. */
function SearchText({ value, onChange }: { value: string; onChange: (value: string, isTyping: boolean) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  useShortcuts({ "/": () => input.current?.focus() });
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    // The first letters of a search are a new entry of the browser's history, and the others change it.
    const isTyping = value !== "" && text !== "";
    const timer = setTimeout(() => latest.current(text, isTyping), 300);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <SearchField className="field" value={text} onChange={setText}>
      <Label className="visually-hidden">Search names</Label>
      <Search aria-hidden size={14} />
      <Input ref={input} placeholder="Search names ( / )" />
    </SearchField>
  );
}
