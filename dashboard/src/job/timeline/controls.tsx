import { ChevronLeft, ChevronRight, type LucideIcon, Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import { Button, ToggleButton } from "react-aria-components";
import { moved, type Range, zoomed } from "./axis";

interface ControlsProps {
  range: Range;
  full: Range;
  isFitting: boolean;
  /** Called with the range to show, or with null for the whole time of the job. */
  onChange: (range: Range | null) => void;
  troubled: number;
  onlyTroubled: boolean;
  onOnlyTroubled: (onlyTroubled: boolean) => void;
}

export function Controls(props: ControlsProps) {
  const { range, full, isFitting, onChange, troubled, onlyTroubled, onOnlyTroubled } = props;
  return (
    <div className="timeline-controls">
      <fieldset className="chips">
        <legend className="visually-hidden">Time shown</legend>
        <Control label="Zoom in" icon={ZoomIn} onPress={() => onChange(zoomed(range, 0.5, full))} />
        <Control label="Zoom out" icon={ZoomOut} isDisabled={isFitting} onPress={() => onChange(wider(range, full))} />
        <Control
          label="Earlier"
          icon={ChevronLeft}
          isDisabled={isFitting}
          onPress={() => onChange(moved(range, -0.5, full))}
        />
        <Control
          label="Later"
          icon={ChevronRight}
          isDisabled={isFitting}
          onPress={() => onChange(moved(range, 0.5, full))}
        />
        <Control label="Fit the whole time" icon={Maximize2} isDisabled={isFitting} onPress={() => onChange(null)} />
      </fieldset>
      {(troubled > 0 || onlyTroubled) && (
        <ToggleButton className="chip" isSelected={onlyTroubled} onChange={onOnlyTroubled}>
          With failures or disruptions
          <span className="chip-count">{troubled}</span>
        </ToggleButton>
      )}
      <span className="secondary timeline-hint">Drag over the times to zoom.</span>
    </div>
  );
}

/** Return twice the range; null if that is all. */
function wider(range: Range, full: Range): Range | null {
  const doubled = zoomed(range, 2, full);
  return doubled.end - doubled.start >= full.end - full.start ? null : doubled;
}

interface ControlProps {
  label: string;
  icon: LucideIcon;
  isDisabled?: boolean;
  onPress: () => void;
}

function Control({ label, icon: Icon, isDisabled = false, onPress }: ControlProps) {
  return (
    <Button className="button job-icon-button" aria-label={label} isDisabled={isDisabled} onPress={onPress}>
      <Icon aria-hidden size={15} />
    </Button>
  );
}
