import { type Bar, hoursText, scaleOf, shareText, USES, unitOf } from "./usage";

const WIDTH = 100;
const HEIGHT = 100;
/** The share of its place that a bar fills. */
const FILLED = 0.8;

/** A bar for each day, made of its uses. The table below it has the same sums as text. */
export function UsageChart({ bars, resource }: { bars: readonly Bar[]; resource: string }) {
  const scale = scaleOf(bars);
  const place = WIDTH / bars.length;
  const [first, last] = [bars[0]?.day, bars.at(-1)?.day];
  return (
    <figure className="usage-chart">
      <Legend bars={bars} />
      <div className="usage-plot">
        <span className="usage-scale">
          {hoursText(scale)} {unitOf(resource)} a day
        </span>
        <svg
          className="usage-bars"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Chart of ${unitOf(resource)} by day; the table below it has their sums`}
        >
          {bars.map((bar, index) => (
            <g key={bar.day}>
              <title>{`${bar.day}: ${hoursText(bar.total)} ${unitOf(resource)}`}</title>
              {/* An invisible bar of full height, so that also a day with little has a title. */}
              <rect className="usage-day" x={index * place} y={0} width={place} height={HEIGHT} />
              {segmentsOf(bar, scale).map(({ tone, y, height }) => (
                <rect
                  key={tone}
                  className={`bucket-${tone}`}
                  x={index * place + (place * (1 - FILLED)) / 2}
                  y={y}
                  width={place * FILLED}
                  height={height}
                />
              ))}
            </g>
          ))}
        </svg>
        <div className="usage-days secondary">
          <span>{first}</span>
          <span>{last}</span>
        </div>
      </div>
    </figure>
  );
}

function segmentsOf(bar: Bar, scale: number): { tone: string; y: number; height: number }[] {
  let y = HEIGHT;
  return USES.flatMap(([use, , tone]) => {
    const height = (HEIGHT * bar.hours[use]) / scale;
    y -= height;
    return height > 0 ? [{ tone, y, height }] : [];
  });
}

function Legend({ bars }: { bars: readonly Bar[] }) {
  const whole = bars.reduce((sum, bar) => sum + bar.total, 0);
  return (
    <ul className="usage-legend">
      {USES.map(([use, title, tone]) => (
        <li key={use}>
          <svg className="usage-mark" viewBox="0 0 10 8" aria-hidden="true">
            <rect className={`bucket-${tone}`} x={0} y={0} width={10} height={8} />
          </svg>
          {title}{" "}
          <span className="secondary">
            {shareText(
              bars.reduce((sum, bar) => sum + bar.hours[use], 0),
              whole,
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
