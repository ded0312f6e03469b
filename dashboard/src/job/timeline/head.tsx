import { memo, type PointerEvent, type RefObject, useState } from "react";
import { localTime } from "../../ui/durations";
import { toneOf } from "../../ui/phases";
import { placeOf, type Range, type Tick, timeAt } from "./axis";
import type { Mark, PhaseSpan, PlacedMark } from "./marks";

interface HeadProps {
  range: Range;
  width: number;
  ticks: readonly Tick[];
  phases: readonly PhaseSpan[];
  marks: readonly PlacedMark[];
  plot: RefObject<HTMLDivElement | null>;
  onZoom: (range: Range) => void;
}

/** The axis, the phases of the job, and the marks. It stays in view while the rows scroll. */
export const Head = memo(({ range, width, ticks, phases, marks, plot, onZoom }: HeadProps) => {
  return (
    <div className="timeline-head">
      <div className="timeline-label secondary">
        <span>Time</span>
        <span>Phase</span>
        {marks.length > 0 && <span>Changes</span>}
      </div>
      <div className="timeline-plot" ref={plot}>
        <Axis range={range} width={width} ticks={ticks} onZoom={onZoom} />
        <PhaseStrip range={range} width={width} phases={phases} />
        {marks.length > 0 && <MarkStrip marks={marks} width={width} />}
      </div>
    </div>
  );
});

/** Pixels that the label of a tick needs. */
const TICK_LABEL = 60;
/** Pixels over which a drag is no click. */
const SHORTEST_DRAG = 6;

function Axis({ range, width, ticks, onZoom }: Pick<HeadProps, "range" | "width" | "ticks" | "onZoom">) {
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const placeIn = (event: PointerEvent<HTMLDivElement>) =>
    Math.max(0, Math.min(width, event.clientX - event.currentTarget.getBoundingClientRect().left));
  const begin = (event: PointerEvent<HTMLDivElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag([placeIn(event), placeIn(event)]);
  };
  const end = () => {
    if (drag !== null && Math.abs(drag[1] - drag[0]) >= SHORTEST_DRAG) {
      const [first, last] = [Math.min(...drag), Math.max(...drag)];
      onZoom({ start: timeAt(first, range, width), end: timeAt(last, range, width) });
    }
    setDrag(null);
  };
  return (
    // The buttons above the chart do the same by keyboard.
    <div
      className="timeline-axis"
      onPointerDown={begin}
      onPointerMove={(event) => drag !== null && setDrag([drag[0], placeIn(event)])}
      onPointerUp={end}
      onPointerCancel={() => setDrag(null)}
    >
      {ticks.map(({ at, label }) => (
        <span key={at} className="timeline-tick" style={{ left: placeOf(at, range, width) }}>
          {placeOf(at, range, width) + TICK_LABEL > width ? "" : label}
        </span>
      ))}
      {drag !== null && (
        <span className="timeline-drag" style={{ left: Math.min(...drag), width: Math.abs(drag[1] - drag[0]) }} />
      )}
    </div>
  );
}

/** Pixels that the name of a phase needs. */
const PHASE_NAME = 70;

function PhaseStrip({ range, width, phases }: { range: Range; width: number; phases: readonly PhaseSpan[] }) {
  return (
    <ol className="timeline-phases" aria-label="Phases of the job">
      {phases.map(({ phase, start, end }) => {
        const left = Math.max(0, placeOf(start, range, width));
        const right = Math.min(width, placeOf(end ?? range.end, range, width));
        if (right < left) return null;
        const time = localTime(new Date(start).toISOString());
        return (
          <li
            key={start}
            className={`timeline-phase tone-${toneOf(phase)}`}
            style={{ left, width: Math.max(2, right - left) }}
            title={`${phase} since ${time}`}
          >
            <span className={right - left < PHASE_NAME ? "visually-hidden" : undefined}>{phase}</span>
            <span className="visually-hidden"> since {time}</span>
          </li>
        );
      })}
    </ol>
  );
}

const LABEL_WIDTH = 110;

function MarkStrip({ marks, width }: { marks: readonly PlacedMark[]; width: number }) {
  return (
    <ol className="timeline-marks" aria-label="Changes of the job">
      {marks.map((placed, index) => {
        const room = (marks[index + 1]?.x ?? width) - placed.x;
        // A mark at the end has its label on its left side if the one before leaves room.
        const isFlipped = room < LABEL_WIDTH && placed.x - (marks[index - 1]?.x ?? 0) > 2 * LABEL_WIDTH;
        return (
          <li
            key={placed.x}
            className={isFlipped ? "timeline-mark is-flipped" : "timeline-mark"}
            style={{ left: placed.x, maxWidth: isFlipped ? LABEL_WIDTH : Math.max(10, room - 4) }}
            title={placed.marks.map(markText).join("\n")}
          >
            <span aria-hidden>{placed.label}</span>
            <span className="visually-hidden">{placed.marks.map(markText).join("; ")}</span>
          </li>
        );
      })}
    </ol>
  );
}

function markText({ at, detail }: Mark): string {
  return `${localTime(new Date(at).toISOString())}: ${detail}`;
}
