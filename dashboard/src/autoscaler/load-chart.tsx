import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type LoadSeries, timeRange } from "./series";

const HEIGHT = 240;
const DARK = "(prefers-color-scheme: dark)";

/** The names of the curves with the tones of their colours, in the order of the data. */
const CURVES = [
  ["CPU requested", "running"],
  ["Memory requested", "changing"],
  ["Maximum load", "failed"],
  ["A job was resized", "succeeded"],
] as const;

/** The requested shares against the maximum load. A table below it has the same figures as text. */
export default function LoadChart({ series }: { series: LoadSeries }) {
  const host = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLUListElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(series);
  latest.current = series;

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const draw = () => {
      chart.current?.destroy();
      const colours = [...(legend.current?.children ?? [])].map((item) => getComputedStyle(item).color);
      const text = getComputedStyle(element).color;
      const line = getComputedStyle(element).borderTopColor;
      chart.current = new uPlot(options(element.clientWidth, colours, text, line), dataOf(latest.current), element);
    };
    draw();
    // A canvas does not follow the colour scheme and the width of the page by itself.
    const scheme = window.matchMedia(DARK);
    scheme.addEventListener("change", draw);
    const observer = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      scheme.removeEventListener("change", draw);
      observer.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, []);

  useEffect(() => chart.current?.setData(dataOf(series)), [series]);

  return (
    <figure className="load-chart">
      <ul ref={legend} className="chart-legend">
        {CURVES.map(([name, tone]) => (
          <li key={tone} className={`tone-${tone}`}>
            <span className="chart-mark" data-curve={tone} aria-hidden="true" />
            {name}
          </li>
        ))}
      </ul>
      <div
        ref={host}
        className="chart-canvas"
        role="img"
        aria-label="Chart of the load; the table below it has its figures"
      />
    </figure>
  );
}

function dataOf({ times, cpu, memory, maxLoad, resized }: LoadSeries): uPlot.AlignedData {
  return [times, cpu, memory, maxLoad, resized];
}

function options(width: number, colours: readonly string[], text: string, line: string): uPlot.Options {
  const [cpu = text, memory = text, maximum = text, resized = text] = colours;
  const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    scales: {
      x: { range: (_chart, low, high) => timeRange(low, high) },
      y: { range: (_chart, _low, high) => [0, Math.max(1, high * 1.05)] },
    },
    axes: [
      { ...axis, space: 110, values: (chart, ticks) => ticks.map((tick) => timeText(tick, spanOf(chart))) },
      { ...axis, size: 56, values: (_chart, ticks) => ticks.map((tick) => `${Math.round(tick * 100)} %`) },
    ],
    series: [
      {},
      { stroke: cpu, width: 2, points },
      // Curves differ in their dashes, not only in their colours.
      { stroke: memory, width: 2, dash: [8, 4], points },
      { stroke: maximum, width: 1, dash: [2, 3], points: { show: false } },
      { stroke: resized, width: 0, paths: () => null, points: { show: true, size: 9, fill: resized } },
    ],
  };
}

/** A line needs two runs, so a single one is drawn as points. */
const points: uPlot.Series.Points = { show: (chart) => chart.data[0].length === 1 };

const DAY = 86_400;
const FEW_MINUTES = 600;

function spanOf({ scales }: uPlot): number {
  return (scales.x?.max ?? 0) - (scales.x?.min ?? 0);
}

/** Return a time in seconds in the language of the reader, as exactly as the span of the chart needs. */
function timeText(seconds: number, span: number): string {
  const time = new Date(seconds * 1000);
  if (span > DAY) return time.toLocaleString(undefined, { month: "numeric", day: "numeric", hour: "2-digit" });
  const second = span < FEW_MINUTES ? ({ second: "2-digit" } as const) : {};
  return time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", ...second });
}
