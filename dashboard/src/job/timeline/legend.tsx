import { Bars, ROW_HEIGHT } from "./bars";
import type { Bar, SegmentKind } from "./rows";

const WIDTH = 36;
const RANGE = { start: 0, end: WIDTH };

const KINDS: readonly (readonly [SegmentKind, string])[] = [
  ["waiting", "waiting to start"],
  ["running", "running"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["disrupted", "disrupted by the cluster"],
  ["stopped", "stopped by jobgate"],
  ["unknown", "unknown"],
];

export function Legend() {
  return (
    <ul className="timeline-legend" aria-label="Legend">
      {KINDS.map(([kind, text]) => (
        <li key={kind}>
          <span style={{ height: ROW_HEIGHT }}>
            <Bars bars={[sample(kind)]} range={RANGE} width={WIDTH} />
          </span>
          {text}
        </li>
      ))}
    </ul>
  );
}

function sample(kind: SegmentKind): Bar {
  const end = WIDTH - 8;
  const isEnding = kind !== "waiting" && kind !== "running" && kind !== "unknown";
  return { attempt: 1, ending: isEnding ? kind : null, start: 0, end, segments: [{ kind, start: 0, end }] };
}
