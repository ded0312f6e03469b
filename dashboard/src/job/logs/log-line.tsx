import { type CSSProperties, memo, useState } from "react";
import { Button } from "react-aria-components";
import { thousands } from "../../ui/numbers";
import type { LogLine } from "./lines";
import type { LineRing } from "./ring";
import { type Matcher, rangesIn } from "./search";
import { classesOf, segmentsOf } from "./segments";

/** Characters of a line that are shown at first, and that each press of the button adds: more make the page slow. */
const SHOWN = 4000;
const MORE = 100_000;

/** How all lines are drawn. */
export interface LineStyle {
  hasTimes: boolean;
  matcher: Matcher | null;
}

interface LogLineProps extends LineStyle {
  line: LogLine;
  isCurrent: boolean;
}

/** A line with its colours and matches. */
export const LogLineView = memo(function LogLineView({ line, hasTimes, matcher, isCurrent }: LogLineProps) {
  const [shown, setShown] = useState(SHOWN);
  const matches = matcher === null ? [] : rangesIn(line.text, matcher, shown);
  const hidden = line.text.length - shown;
  return (
    <div className={isCurrent ? "log-line is-current" : "log-line"}>
      {hasTimes && line.at !== null && (
        <time className="log-time" dateTime={line.at}>
          {timeText(line.at)}
        </time>
      )}
      {line.source !== "" && <span className="log-source">{line.source}</span>}
      <span className="log-text">
        {segmentsOf(line.text, line.spans, matches, shown).map(({ start, text, style, isMatch }) => {
          const className = style === null ? undefined : classesOf(style);
          if (isMatch) {
            return (
              <mark key={start} className={isCurrent ? "is-current" : undefined}>
                {text}
              </mark>
            );
          }
          return className === undefined ? (
            text
          ) : (
            <span key={start} className={className}>
              {text}
            </span>
          );
        })}
      </span>
      {hidden > 0 && (
        <Button className="button log-more" onPress={() => setShown(shown + MORE)}>
          Show {hidden > MORE ? `${thousands(MORE)} of ` : ""}
          {thousands(hidden)} more characters
        </Button>
      )}
    </div>
  );
});

/** Return the style that gives the sources of all lines one width. */
export function sourceColumn({ widestSource }: LineRing): CSSProperties {
  return { "--source": `${widestSource}ch` } as CSSProperties;
}

/** Return the time of day with milliseconds, in the reader's time zone. */
function timeText(at: string): string {
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const milliseconds = String(time.getMilliseconds()).padStart(3, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${milliseconds}`;
}
