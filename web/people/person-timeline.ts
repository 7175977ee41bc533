/** Timeline of a person, newest first, in the service's sentences. Each entry links to its subject. */
import type { TimelineItem } from "../../src/insight/timeline/item.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useList } from "../base/use-list.ts";
import { Icon, type IconName } from "../component/icon.ts";
import { LoadingState } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { SourceLink } from "./source-link.ts";

const REFRESH_MS = 5_000;
const ICONS: Readonly<Record<TimelineItem["kind"], IconName>> = {
  event: "events",
  access: "keys",
  access_end: "cross",
  credits: "credits",
  purchase: "selling",
  refund: "replay",
  plan: "clock",
  plan_end: "clock",
  mail: "mail",
  record: "records",
  change: "audit",
  made: "person",
};

export function PersonTimeline({ place, id }: { place: Place; id: string }): View {
  const list = useList<TimelineItem>(apiPath(place, "persons", id, "story"), REFRESH_MS);
  return html`<section class="block" aria-label="Timeline"><div class="block-head"><h2>Timeline</h2>
      <span class="quiet">Everything that happened for this customer, newest first</span></div>
    ${
      list.items === undefined
        ? html`<${LoadingState} error=${list.error} rows=${8} onRetry=${list.reload} />`
        : html`<ol class="story">${list.items.map((item) => html`<${Line} key=${item.id} place=${place} person=${id} item=${item} />`)}</ol>
          <${OlderButton} list=${list} none="No older entries." />`
    }</section>`;
}

function Line({ place, person, item }: { place: Place; person: string; item: TimelineItem }): View {
  const { kind, at, sentence, detail, look, thing, relay, eventId } = item;
  const href = hrefOf(place, person, item);
  const words = html`<${Sentence} text=${sentence} isLink=${href !== null} />`;
  const isEvent = thing.kind === "event";
  return html`<li class="story-line story-${look}">
    <span class="story-icon"><${Icon} name=${ICONS[kind]} size=${16} /></span>
    <span class="story-what"><span>${href === null ? words : html`<a data-row href=${href}>${words}</a>`}</span>
      ${detail !== null && html`<span class="story-detail"><${Sentence} text=${detail} /></span>`}</span>
    <span class="story-from">${!isEvent && html`<${SourceLink} place=${place} relay=${relay} eventId=${eventId} />`}${
      isEvent && (look === "dead" || look === "failed") && html`<a href=${href}>Show cause and replay</a>`
    }</span>
    <${Ago} at=${at} /></li>`;
}

function hrefOf(place: Place, person: string, { thing }: TimelineItem): string | null {
  switch (thing.kind) {
    case "event":
      return pagePath(place, "events", thing.id);
    case "record":
      return pagePath(place, "records", thing.collection ?? "", thing.id);
    case "email":
      return pagePath(place, "mail") + writeQuery({ person });
    case "purchase":
      return pagePath(place, "catalog") + writeQuery({ tab: "receipts", person });
    case "subscription":
      return pagePath(place, "catalog") + writeQuery({ tab: "subscriptions", person });
    case "person":
      return pagePath(place, "audit-log") + writeQuery({ target: `person:${person}` });
    default:
      return null;
  }
}
