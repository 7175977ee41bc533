/** One attention item: what is wrong, since when and why, whether the cause still exists, and how to fix it. */
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { AttentionItem } from "../../src/insight/overview/attention-item.ts";
import type { DeadView } from "../../src/insight/overview/dead-events.ts";
import type { SettingsView } from "../../src/rules/settings/settings.ts";
import { formatKind } from "../alert/kind-text.ts";
import { call, writeQuery } from "../base/api.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { AskOwnerLine, permissionToFix } from "../component/ask-owner.ts";
import { Code } from "../component/code.ts";
import { CreateItem } from "../component/create-item.ts";
import { Explanation, NowRow } from "../component/explanation.ts";
import { FixWay, PasteSecretLink } from "../component/fix-link.ts";
import { Icon } from "../component/icon.ts";
import { ChangeRow, UndoChange } from "../component/recent-change.ts";
import { CommandLine, Sentence } from "../component/sentence.ts";
import { Ago, Moment } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { formatActionType } from "../relay/relay-words.ts";

/** Codes of a receiver that rejects requests because of its secret or its recipe. */
const REJECTING: readonly string[] = ["relay_refusing", "never_verified", "secret_missing"];

interface Props {
  place: Place;
  need: AttentionItem;
  /** Opens the replay dialog. */
  onReplay: (filter: BulkFilter) => void;
}

export function AttentionRow({ place, need, onReplay }: Props): View {
  const { code, docs, relay, since, target } = need;
  const words = formatKind(code);
  const cause = need.dead?.failure.code ?? code;
  return html`<li class="need ${target === "server" ? "need-mild" : ""}">
    <div class="need-head">
      <h3><${Icon} name=${code === "environment_held" ? "pause" : "attention"} size=${16} />${relay === null ? (words ?? code) : html`<a data-row href=${pagePath(place, "relays", relay)}>${relay}</a>: ${formatWhat(need)}`}</h3>
      ${target !== "server" && html`<span class="need-since">since <${Moment} at=${since} /> (<${Ago} at=${since} />)</span>`}
      <${Code} code=${cause} docs=${docs?.replace(/[^/]+$/, cause)} /></div>
    ${need.dead === null ? html`<${Explanation} change=${need.change} doubt=${need.doubt} what=${need.message} todo=${need.todo} next=${need.next} />` : html`<${WhyDead} dead=${need.dead} change=${need.change} />`}
    <${AskOwnerLine} needs=${permissionToFix(code, need.dead?.cause.stands === "no")} />
    <${WaysOut} place=${place} need=${need} onReplay=${onReplay} />
  </li>`;
}

function formatWhat({ code, dead }: AttentionItem): string {
  if (dead !== null)
    return `${formatNumber(dead.events)}${dead.more ? "+" : ""} ${dead.events === 1 ? "event is" : "events are"} dead`;
  if (code === "relay_failed") return "events are dead";
  return (formatKind(code) ?? code).toLowerCase();
}

function WhyDead({
  dead: { failure, cause },
  change,
}: {
  dead: DeadView;
  change: AttentionItem["change"];
}): View {
  return html`<dl class="explanation">
    ${change !== null && html`<${ChangeRow} change=${change} />`}
    <div><dt>Why</dt><dd>${failure.type !== null && html`<b>${formatActionType(failure.type)}</b>: `}<${Sentence} text=${failure.message} /></dd></div>
    <${NowRow} cause=${cause} />
  </dl>`;
}

/** Returns the API paths that are outdated after an item was resolved. */
export function needPaths(place: Place): string[] {
  return [apiPath(place, "overview"), "/api/overview", apiPath(place, "alerts"), apiPath(place, "problems")];
}

function WaysOut({ place, need, onReplay }: Props): View {
  const { send, isSending } = useSend();
  const { code, target, relay, change, dead, newest, alert, message, todo } = need;
  const own = relay === null ? null : pagePath(place, "relays", relay);
  const changes = needPaths(place);
  const resolve = () =>
    send({
      method: "POST",
      path: apiPath(place, "alerts", alert ?? "", "resolve"),
      changes,
      done: "Marked as resolved. A new occurrence raises a new alert.",
      tellsRefusal: true,
    });
  const release = async (): Promise<void> => {
    const path = apiPath(place, "settings");
    const read = await call<{ settings: SettingsView }>("GET", path).catch(() => null);
    const version = read?.settings.version;
    const wanted = { method: "PUT", path, body: { version, held: false }, tellsRefusal: true } as const;
    await send({
      ...wanted,
      changes: [...changes, path],
      done: "Hold released. The waiting events run now, in the order of arrival.",
    });
  };
  const events = (state: string, reason?: string): string =>
    pagePath(place, "events") + writeQuery({ relay, state, reason });
  return html`<div class="need-ways">
    ${change !== null && html`<${UndoChange} place=${place} change=${change} relay=${relay} back="home" />`}
    ${dead !== null && dead.cause.missing !== null && relay !== null && html`<${CreateItem} place=${place} thing=${dead.cause.missing} relay=${relay} back="home" changed=${change !== null} />`}
    ${newest !== null && dead?.cause.stands !== "no" && relay !== null && html`<${FixWay} place=${place} code=${newest.reason} status=${newest.status} person=${newest.person} relay=${relay} />`}
    ${
      code === "relay_failed" &&
      relay !== null &&
      html`<button data-needs="replay" type="button" class=${dead?.cause.stands === "no" && dead.failure.code !== "missed" ? "primary" : ""} onClick=${() => onReplay({ state: "dead", relay })}>
          <${Icon} name="replay" size=${14} />Replay ${dead === null ? "them" : formatDead(dead)}…</button>
        ${newest !== null && html`<a class="button" href=${pagePath(place, "events", newest.event)}>Open the newest</a>`}
        <a class="button" href=${events("dead")}>Show all</a>`
    }
    ${code === "approval_waiting" && html`<a class="button primary" data-needs="approve" href="/approvals/${target.slice("approval:".length)}">Review change</a>`}
    ${code === "environment_held" && html`<button data-needs="edit_settings" type="button" class="primary" disabled=${isSending} onClick=${() => void release()}>Release the hold</button>`}
    ${REJECTING.includes(code) && html`<a class="button" href=${pagePath(place, "requests") + writeQuery({ relay, outcome: "refused" })}>Show rejected requests</a>`}
    ${REJECTING.includes(code) && relay !== null && html`<${PasteSecretLink} place=${place} relay=${relay} />`}
    ${code === "requests_rejected" && html`<a class="button primary" href=${own + writeQuery({ tab: "missing" })}>Show the missing events</a>`}
    ${code === "relay_ignoring" && html`<a class="button" href=${pagePath(place, "requests") + writeQuery({ relay, outcome: "ignored" })}>Show ignored requests</a>`}
    ${(code === "relay_nobody" || code === "sale_nobody") && html`<a class="button" href=${events("failed")}>Show failed events</a>`}
    ${(code === "relay_failing" || code === "relay_nobody") && newest !== null && html`<a class="button" href=${pagePath(place, "events", newest.event)}>Open the newest</a>`}
    ${code === "sale_suspended" && html`<a class="button primary" href=${pagePath(place, "people", target.slice("person:".length))}>Open person</a>`}
    ${code === "relay_failing" && html`<a class="button" href=${events("queued", "any")}>Show waiting events</a>`}
    ${code === "backup_missing" && html`<a data-needs="manage_server" class="button" href=${pagePath(place, "settings") + writeQuery({ tab: "backups" })}>Back up now</a>`}
    ${code === "backup_copy_failed" && html`<a data-needs="manage_server" class="button" href=${pagePath(place, "settings") + writeQuery({ tab: "backups" })}>Open backups</a>`}
    ${code === "sender_domain_required" && html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "mail") + writeQuery({ tab: "domain" })}>Set a sender domain</a>`}
    ${(code === "alerts_unmailed" || code === "codes_unmailed") && html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "mail") + writeQuery({ tab: "server" })}>Open the mail server</a>`}
    ${code === "codes_unmailed" && html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "mail") + writeQuery({ tab: "domain" })}>Open the sender domain</a>`}
    ${code === "alert_channel_failing" && html`<a class="button primary" href=${pagePath(place, "alerts") + writeQuery({ tab: "channels" })}>Open the channels</a>`}
    ${code === "alerts_unmailed" && html`<a class="button" href=${pagePath(place, "mail") + writeQuery({ kind: "alert", state: "failed" })}>Show mails</a>`}
    ${code === "mail_unknown" && html`<a class="button" href=${pagePath(place, "mail") + writeQuery({ state: "unknown" })}>Show mails</a>`}
    ${own !== null && code !== "relay_failed" && html`<a class="button" href=${own}>Open ${relay}</a>`}
    ${alert !== null && html`<button data-needs="replay" type="button" class="link" disabled=${isSending} onClick=${() => void resolve()}>Mark as resolved</button>`}
    <${CommandLine} texts=${[change?.todo ?? null, ...(dead === null ? [message, todo] : [dead.failure.message, dead.cause.message])]} />
  </div>`;
}

function formatDead({ events, more }: DeadView): string {
  return more ? `${formatNumber(events)}+ events` : formatCount(events, "event");
}
