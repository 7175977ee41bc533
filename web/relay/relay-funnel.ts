/** Funnel of a relay's requests of the last 24 hours: how many passed each step, what stopped the others, and a link to their list. */
import type { FunnelView } from "../../src/insight/overview/funnel.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { findMovedPath } from "../base/section-path.ts";
import { formatMoment, useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice, Skeleton } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";

type Box = FunnelView["boxes"][number];
type Stop = Box["stops"][number];

const REFRESH_MS = 5_000;
const CALL_STEPS: readonly string[] = ["calls", "verified", "when", "dedupe"];

function useFunnel(place: Place, name: string) {
  return useLoad<{ funnel: FunnelView }>(apiPath(place, "relays", name, "funnel"), REFRESH_MS);
}

export function RelayFunnel({ place, name }: { place: Place; name: string }): View {
  const { data, error } = useFunnel(place, name);
  return html`<section class="block" aria-label="Last 24 hours"><div class="block-head"><h2>Last 24 hours</h2></div>
    ${
      data === undefined
        ? error === null
          ? html`<${Skeleton} rows=${5} />`
          : html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`
        : html`<${Funnel} place=${place} funnel=${data.funnel} />`
    }</section>`;
}

function Funnel({ place, funnel }: { place: Place; funnel: FunnelView }): View {
  const { boxes, approximate, callsSince, message } = funnel;
  const now = useNow(60_000);
  const most = Math.max(1, ...boxes.map(({ came }) => came));
  return html`<p class="funnel-said"><${Sentence} text=${message} /></p>
    ${(boxes[0]?.came ?? 0) > 0 && html`<ol class="funnel">${boxes.map((box) => html`<${BoxRow} key="${box.step} ${box.action}" place=${place} box=${box} most=${most} funnel=${funnel} />`)}</ol>`}
    ${callsSince !== null && html`<p class="quiet">Relay knows rejected requests only since ${formatMoment(callsSince, now)}: the true number can be higher.</p>`}
    ${approximate && html`<p class="quiet">Approximate: based on the newest events.</p>`}`;
}

function BoxRow({
  place,
  box,
  most,
  funnel: { callsSince, approximate },
}: {
  place: Place;
  box: Box;
  most: number;
  funnel: FunnelView;
}): View {
  const { step, title, passed, waits, waitsFor, stops } = box;
  const isLeast = callsSince !== null && CALL_STEPS.includes(step);
  return html`<li class="funnel-box">
    <span class="funnel-count" title=${isLeast ? "At least" : ""}>${formatNumber(passed)}${isLeast && "+"}</span>
    <div><p class="funnel-title">${title}</p><${Bar} count=${passed} most=${most} />
      ${
        waits > 0 &&
        html`<p class="funnel-stop"><${StateMark} state="queued" word="${formatNumber(waits)} ${waits === 1 ? "waits" : "wait"} here" />
          ${waitsFor !== null && html`<${Why} place=${place} stop=${waitsFor} label="that wait after" before=${waits > waitsFor.count ? "Most after " : "After "} />`}</p>`
      }
      ${stops.map((stop) => html`<${StopRow} key=${stop.code} place=${place} stop=${stop} about=${approximate && step !== "calls"} />`)}
    </div></li>`;
}

function StopRow({ place, stop, about }: { place: Place; stop: Stop; about: boolean }): View {
  const { code, count } = stop;
  const words = `${about ? "about " : ""}${formatNumber(count)} stopped`;
  const isUsual = code === "when" || code === "duplicate";
  return html`<p class="funnel-stop"><${StateMark} state=${isUsual ? "skipped" : "failed"} word=${words} />
    <${Why} place=${place} stop=${stop} label="that stopped with" /></p>`;
}

function Why({
  place,
  stop: { code, count, message, see },
  label,
  before = "",
}: {
  place: Place;
  stop: Stop;
  label: string;
  before?: string;
}): View {
  return html`<span class="funnel-why">${before}<code>${code}</code> <${Sentence} text=${message} /></span>
    ${see !== null && html`<a href=${pagePath(place, findMovedPath(see.room) ?? see.room) + writeQuery(see.query)} aria-label="Show: ${count} ${label} ${code}">Show</a>`}`;
}

function Bar({ count, most }: { count: number; most: number }): View {
  const width = count === 0 ? 0 : Math.max(0.5, (count / most) * 100);
  return html`<svg class="funnel-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" focusable="false">
    <rect class="bar-ground" width="100" height="1" /><rect class="funnel-fill" width=${width} height="1" /></svg>`;
}
