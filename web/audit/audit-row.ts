/** One row of the audit: who did what to what. An open row adds the values before and after. */
import type { AuditView } from "../../src/platform/audit/audit.ts";
import { writeQuery } from "../base/api.ts";
import type { Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { Icon } from "../component/icon.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";
import { type Difference, listDifferences } from "./differences.ts";
import { formatAction, formatNamed, hrefOf } from "./words.ts";

const VALUE_CHARS = 400;
const NAME_CHARS = 80;
const SHORT_FIELDS = 3;

/** Audit row as the dashboard parses it, which keeps every number as written. */
export type AuditItem = Omit<AuditView, "before" | "after"> & { before: Json; after: Json };

interface Props {
  place: Place;
  /** Audit of the environment or of the server, as in the address. */
  scope: string;
  item: AuditItem;
}

export function AuditRow({ isOpen, ...props }: Props & { isOpen: boolean }): View {
  const { place, item } = props;
  const { id, at, actor, action, target, actorName, targetName, before, after } = item;
  const differences = listDifferences(before, after);
  const turn = (): void => setQuery({ open: isOpen ? "" : id });
  return html`<li class=${isOpen ? "audit-row open" : "audit-row"}><div class="audit-head">
      <button type="button" class="bare audit-turn" data-row aria-expanded=${isOpen} aria-label="${formatAction(action)}, ${formatNamed(target, targetName)}" onClick=${turn}>
        <${Icon} name=${isOpen ? "down" : "chevron"} size=${14} /></button>
      <span class="audit-what"><b>${formatAction(action)}</b> <${NamedLink} words=${target} name=${targetName} href=${hrefOf(place, target, [after, before])} />
        ${!isOpen && differences.length > 0 && html`${" "}<span class="quiet audit-short">${formatShort(differences)}</span>`}</span>
      <span class="audit-who"><${NamedLink} words=${actor} name=${actorName} href=${hrefOf(place, actor)} /></span>
      <${Ago} at=${at} /></div>
    ${isOpen && html`<${Opened} ...${props} differences=${differences} />`}</li>`;
}

function NamedLink({ words, name, href }: { words: string; name: string | null; href: string | null }): View {
  const shown = html`<${SafeText} text=${formatNamed(words, name)} limit=${NAME_CHARS} />`;
  return href === null
    ? html`<span title=${words}>${shown}</span>`
    : html`<a href=${href} title=${words}>${shown}</a>`;
}

function formatShort(differences: readonly Difference[]): string {
  const names = differences.slice(0, SHORT_FIELDS).map(({ field }) => field.slice(0, NAME_CHARS));
  const more = differences.length - names.length;
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function Opened({ place, scope, item, differences }: Props & { differences: readonly Difference[] }): View {
  const { target, actor, targetName, actorName, eventId, id } = item;
  const of = (filter: { target: string } | { actor: string }): string =>
    pagePath(place, "audit-log") + writeQuery({ of: scope, ...filter });
  return html`<div class="audit-open">
    ${
      differences.length === 0
        ? html`<p class="quiet">There are no details.</p>`
        : html`<div class="audit-fields"><table><thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
          <tbody>${differences.map(
            ({
              field,
              before,
              after,
            }) => html`<tr key=${field}><th scope="row"><code><${SafeText} text=${field === "" ? "(all)" : field} limit=${NAME_CHARS} /></code></th>
              <td><${Value} side="left" text=${before} /></td><td><${Value} side="right" text=${after} /></td></tr>`,
          )}</tbody></table></div>`
    }
    <p class="audit-more"><a href=${of({ target })}>All of ${formatNamed(target, targetName).slice(0, NAME_CHARS)}</a>
      <a href=${of({ actor })}>All by ${formatNamed(actor, actorName).slice(0, NAME_CHARS)}</a>
      ${eventId !== null && html`<a href=${pagePath(place, "events", eventId)}>Its event</a>`}
      <span class="quiet">${id}</span></p></div>`;
}

function Value({ side, text }: { side: "left" | "right"; text: string | undefined }): View {
  if (text === undefined) return html`<span class="quiet">–</span>`;
  const mark = side === "left" ? "del" : "ins";
  const shown =
    text === ""
      ? html`<span class="quiet">empty</span>`
      : html`<${SafeText} text=${text} limit=${VALUE_CHARS} />`;
  return html`<${mark} class="diff-${side}">${shown}</${mark}>`;
}
