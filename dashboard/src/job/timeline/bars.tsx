import { placeOf, type Range } from "./axis";
import type { Bar, Ending, Segment, Step } from "./rows";

/** Pixels of a row. WCAG asks for targets of at least 24. */
export const ROW_HEIGHT = 26;
const MIDDLE = ROW_HEIGHT / 2;

/** The patterns of bars, once in each page that shows them. */
export function Patterns() {
  return (
    <svg className="timeline-patterns" width={0} height={0} aria-hidden focusable="false">
      <defs>
        <pattern id="timeline-failed" width={6} height={6} patternUnits="userSpaceOnUse">
          <path className="timeline-hatch" d="M0 6 6 0M-1 1 1-1M5 7 7 5M0 0 6 6" />
        </pattern>
        <pattern id="timeline-disrupted" width={6} height={6} patternUnits="userSpaceOnUse">
          <path className="timeline-hatch" d="M0 6 6 0M-1 1 1-1M5 7 7 5" />
        </pattern>
        <pattern id="timeline-stopped" width={5} height={5} patternUnits="userSpaceOnUse">
          <circle className="timeline-dot" cx={2.5} cy={2.5} r={1} />
        </pattern>
      </defs>
    </svg>
  );
}

interface PlotProps {
  range: Range;
  width: number;
}

/** The bars of one replica, and the pauses between its attempts. */
export function Bars({ bars, range, width }: PlotProps & { bars: readonly Bar[] }) {
  const x = (time: number | null) => clipped(placeOf(time ?? range.end, range, width), width);
  return (
    <svg className="timeline-bars" width={width} height={ROW_HEIGHT} aria-hidden focusable="false">
      {bars.map((bar, index) => {
        const next = bars[index + 1];
        const [start, end] = [x(bar.start), x(bar.end)];
        if (end < 0 || start > width) return null;
        return (
          <g key={bar.attempt} data-attempt={bar.attempt}>
            {next !== undefined && <path className="timeline-gap" d={`M${end} ${MIDDLE}H${x(next.start)}`} />}
            {bar.segments.map((segment) => (
              <SegmentBar key={segment.kind} segment={segment} start={x(segment.start)} end={x(segment.end)} />
            ))}
            {bar.ending !== null && <EndMark ending={bar.ending} x={end} width={width} />}
          </g>
        );
      })}
    </svg>
  );
}

/** Return a place just outside of the plot for all that are further away: browsers draw huge shapes slowly. */
function clipped(x: number, width: number): number {
  return Math.max(-20, Math.min(width + 20, x));
}

const HATCHED: readonly string[] = ["failed", "disrupted", "stopped"];

function SegmentBar({ segment: { kind }, start, end }: { segment: Segment; start: number; end: number }) {
  const isThin = kind === "waiting";
  const box = { x: start, y: isThin ? MIDDLE - 3 : 6, width: Math.max(1, end - start), height: isThin ? 6 : 14, rx: 2 };
  return (
    <>
      <rect className={`timeline-${kind}`} {...box} />
      {HATCHED.includes(kind) && <rect fill={`url(#timeline-${kind})`} {...box} />}
    </>
  );
}

const GLYPHS: Readonly<Record<Ending, string>> = {
  succeeded: "M-3 0-1 2.4 3.2-2.4",
  failed: "M-2.4-2.4 2.4 2.4M-2.4 2.4 2.4-2.4",
  disrupted: "M1-3.4-1.8.4H1.8L-1 3.4",
  stopped: "M-2-2H2V2H-2Z",
};

/** How an attempt ended, as a shape. It is visible however short the bar is. */
function EndMark({ ending, x, width }: { ending: Ending; x: number; width: number }) {
  if (x < 0 || x > width) return null;
  return (
    <g transform={`translate(${Math.max(7, Math.min(x, width - 7))} ${MIDDLE})`}>
      <circle className={`timeline-end timeline-${ending}`} r={6.5} />
      <path className="timeline-glyph" d={GLYPHS[ending]} />
    </g>
  );
}

/** The number of running replicas of a task over time, as an area. */
export function RunningArea({ steps, range, width }: PlotProps & { steps: readonly Step[] }) {
  const most = Math.max(1, ...steps.map((step) => step.count));
  const height = ROW_HEIGHT - 6;
  const y = (count: number) => ROW_HEIGHT - 2 - (count / most) * height;
  const x = (time: number) => clipped(placeOf(time, range, width), width);
  const path = steps.map(({ at, count }) => `H${x(at)}V${y(count)}`).join("");
  return (
    <svg className="timeline-bars" width={width} height={ROW_HEIGHT} aria-hidden focusable="false">
      {steps[0] !== undefined && (
        <path className="timeline-area" d={`M${x(steps[0].at)} ${y(0)}${path}H${x(range.end)}V${y(0)}`} />
      )}
    </svg>
  );
}
