/** Bar of a relay's last 24 hours. Its length compares relays and its colors show the outcomes of events. */
import type { RelayItem } from "../base/answer.ts";
import { formatNumber, formatOutcomes, OUTCOMES } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";

const WIDTH = 96;
const HEIGHT = 6;

type Counts = RelayItem["last24h"];

export function totalOf(counts: Counts): number {
  return counts.done + counts.waiting + counts.failed + counts.dead;
}

/** Formats "12 done, 1 dead", or "no events". */
function formatCounts(counts: Counts): string {
  const words = formatOutcomes(counts);
  return counts.approximate && totalOf(counts) > 0 ? `about ${words}` : words;
}

/** `most` is the total of the busiest relay. Lengths use the square root, so that a quiet relay stays visible. */
export function RelayBar({ counts, most }: { counts: Counts; most: number }): View {
  const total = totalOf(counts);
  const length = total === 0 ? 0 : Math.max(8, WIDTH * Math.sqrt(total / Math.max(most, 1)));
  let at = 0;
  return html`<span class="bar" title="Last 24 hours: ${formatCounts(counts)}">
    <svg width=${WIDTH} height=${HEIGHT} role="img" aria-label="Last 24 hours: ${formatCounts(counts)}">
      <rect class="bar-ground" width=${WIDTH} height=${HEIGHT} rx="3" />
      ${OUTCOMES.map((part) => {
        if (counts[part] === 0) return null;
        const width = Math.max(2, (counts[part] / total) * length);
        at += width;
        return html`<rect key=${part} class="bar-${part}" x=${at - width} width=${width} height=${HEIGHT} />`;
      })}
    </svg>
    <span class="bar-count">${total === 0 ? "–" : formatNumber(total)}</span>
  </span>`;
}
