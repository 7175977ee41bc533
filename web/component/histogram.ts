/**
 * Stacked bars over time, by outcome. A drag chooses a range, and so do the keys: arrows move, with shift they extend,
 * Enter chooses, Escape cancels. A text below and for screen readers describes each bar.
 */
import { useRef, useState } from "preact/hooks";
import { formatNumber, formatOutcomes, OUTCOMES, type OutcomeCounts, totalOf } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { formatMoment, useNow } from "../base/time-words.ts";
import { StateShape } from "./state-mark.ts";

interface BarCounts extends OutcomeCounts {
  /** Requests that a receiver rejected, so that they are no events. */
  rejected: number;
}

interface HistogramBar extends BarCounts {
  /** Start of the bar. */
  at: string;
}

interface Props {
  label: string;
  bars: readonly HistogramBar[];
  /** Milliseconds that a bar covers. */
  everyMs: number;
  /** True if some counts are estimates from samples. */
  approximate?: boolean;
  /** Receives the range from the start of its first bar to the end of its last. */
  onChoose: (since: string, until: string) => void;
}

const HEIGHT = 100;
const WIDTH = 10;
const NONE = { done: 0, waiting: 0, failed: 0, dead: 0 };
/** The parts of a bar from the bottom to the top, each with the state that gives its shape. */
const PARTS = [
  ...OUTCOMES.map((name) => ({ name, state: name })),
  { name: "rejected", state: "refused" },
] as const;
/** Smallest height of a bar with any events, so that it stays visible. */
const LEAST = 3;

interface Range {
  from: number;
  to: number;
}

export function Histogram({ label, bars, everyMs, approximate = false, onChoose }: Props): View {
  const now = useNow(60_000);
  const [at, setAt] = useState<number | null>(null);
  const [anchor, setAnchor] = useState<number | null>(null);
  const [isDragging, setDragging] = useState(false);
  const plot = useRef<HTMLDivElement>(null);
  const last = bars.length - 1;
  const range = at === null ? null : rangeOf(anchor ?? at, at, last);
  const most = Math.max(1, ...bars.map(heightOf));
  const about = approximate ? "about " : "";
  const moment = (index: number): string => formatMoment(timeOf(bars, everyMs, index), now, { dated: true });
  const shown = range ?? { from: 0, to: last };
  const sum = addUp(bars.slice(shown.from, shown.to + 1));
  const time = `${moment(shown.from)} to ${moment(shown.to + 1)}: ${about}`;
  const words = time + formatCounts(sum);
  const choose = (): void => {
    if (range === null) return;
    letGo();
    onChoose(timeOf(bars, everyMs, range.from), timeOf(bars, everyMs, range.to + 1));
  };
  const letGo = (): void => {
    setAt(null);
    setAnchor(null);
    setDragging(false);
  };
  const find = ({ clientX }: PointerEvent): number => {
    const box = plot.current?.getBoundingClientRect();
    if (box === undefined || box.width === 0) return 0;
    return clamp(Math.floor(((clientX - box.left) / box.width) * bars.length), last);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const step = STEPS[event.key];
    if (step !== undefined) {
      const next = clamp(step(at ?? last + 1, last), last);
      setAnchor(event.shiftKey ? (anchor ?? at ?? next) : null);
      setAt(next);
    } else if (event.key === "Enter" && range !== null) choose();
    else if (event.key === "Escape" && range !== null) letGo();
    else return;
    event.preventDefault();
  };
  const drag = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      plot.current?.setPointerCapture(event.pointerId);
      setAnchor(find(event));
      setAt(find(event));
      setDragging(true);
    },
    onPointerMove: (event: PointerEvent) => setAt(find(event)),
    onPointerUp: () => isDragging && choose(),
    onPointerCancel: letGo,
    onPointerLeave: () => !isDragging && letGo(),
  };
  return html`<figure class="histogram">
    <div class="histogram-plot" ref=${plot} tabindex="0" role="slider" aria-label="${label}: arrow keys move, Shift extends, Enter shows only that time"
      aria-valuemin="0" aria-valuemax=${last} aria-valuenow=${at ?? last} aria-valuetext=${words} onKeyDown=${press} onBlur=${letGo} ...${drag}>
      <svg viewBox="0 0 ${bars.length * WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true" focusable="false">
        ${range !== null && html`<rect class="histogram-range" x=${range.from * WIDTH} width=${(range.to - range.from + 1) * WIDTH} height=${HEIGHT} />`}
        <rect class="histogram-ground" y=${HEIGHT - 1} width=${bars.length * WIDTH} height="1" />
        ${bars.map((bar, index) => html`<${Stack} key=${bar.at} bar=${bar} at=${index} most=${most} />`)}</svg>
    </div>
    <div class="histogram-ends" aria-hidden="true"><span>${moment(0)}</span><span>${bars.some((bar) => heightOf(bar) > 0) && `highest bar: ${about}${formatNumber(most)}`}</span><span>${moment(bars.length)}</span></div>
    <figcaption>${time}${heightOf(sum) === 0 ? formatCounts(sum) : html`<${Legend} counts=${sum} />`}</figcaption>
  </figure>`;
}

function heightOf(counts: BarCounts): number {
  return totalOf(counts) + counts.rejected;
}

/** Formats "12 done, 1 dead, 3 rejected", or "no events". */
function formatCounts(counts: BarCounts): string {
  if (counts.rejected === 0) return formatOutcomes(counts);
  const rejected = `${formatNumber(counts.rejected)} rejected`;
  return totalOf(counts) === 0 ? rejected : `${formatOutcomes(counts)}, ${rejected}`;
}

/** Shows the words of `formatCounts`, each with its shape. */
function Legend({ counts }: { counts: BarCounts }): View {
  return html`${PARTS.filter(({ name }) => counts[name] > 0).map(
    ({ name, state }, at) =>
      html`${at > 0 && ", "}<span key=${name} class="histogram-outcome"><${StateShape} state=${state} />${formatCounts({ ...NONE, rejected: 0, [name]: counts[name] })}</span>`,
  )}`;
}

function Stack({ bar, at, most }: { bar: HistogramBar; at: number; most: number }): View {
  let top = HEIGHT;
  return html`<g>${PARTS.map(({ name }) => {
    if (bar[name] === 0) return null;
    const height = Math.min(top, Math.max(LEAST, (bar[name] / most) * HEIGHT));
    top -= height;
    return html`<rect key=${name} class="bar-${name}" x=${at * WIDTH + 1} y=${top} width=${WIDTH - 2} height=${height} />`;
  })}</g>`;
}

const STEPS: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowLeft: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  PageUp: (at) => at - 12,
  PageDown: (at) => at + 12,
  Home: () => 0,
  End: (_, last) => last,
};

function rangeOf(one: number, other: number, last: number): Range {
  return { from: clamp(Math.min(one, other), last), to: clamp(Math.max(one, other), last) };
}

function clamp(at: number, last: number): number {
  return Math.max(0, Math.min(last, at));
}

/** Returns the start of a bar. The index after the last bar gives the end of the last. */
function timeOf(bars: readonly HistogramBar[], everyMs: number, index: number): string {
  const first = Date.parse(bars[0]?.at ?? "") || 0;
  return new Date(first + index * everyMs).toISOString();
}

function addUp(bars: readonly HistogramBar[]): BarCounts {
  const sum = { ...NONE, rejected: 0 };
  for (const bar of bars) for (const { name } of PARTS) sum[name] += bar[name];
  return sum;
}
