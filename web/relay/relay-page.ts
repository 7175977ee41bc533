/** Page of one relay: its head and the tab that the address names. */

import { useState } from "preact/hooks";
import type { HealthView } from "../../src/insight/overview/health.ts";
import type { MissingThing } from "../../src/rules/relay/relay-reference.ts";
import type { Relay, SavedRelay } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState, StaleNotice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Tab, TabLinks } from "../component/tab-links.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { BulkReplayLine } from "../event/bulk-progress.ts";
import { laterPage } from "../shell/later-page.ts";
import { secretsOf } from "./relay-created.ts";
import { RelayDelete } from "./relay-delete.ts";
import { HealthMark } from "./relay-health.ts";
import { RelayHistory } from "./relay-history.ts";
import { RelayOverview } from "./relay-overview.ts";
import { RelayRejected } from "./relay-rejected.ts";
import { RelaySecrets, type SecretUse } from "./relay-secret.ts";
import { RelayTest } from "./relay-test.ts";
import { SimulateButton } from "./simulate-dialog.ts";

const REFRESH_MS = 5_000;
/** The builder loads when the user opens it. */
const RelayDefinition = laterPage("", async () => (await import("./relay-definition.ts")).RelayDefinition);

/** Returns the address of a relay's tab; "" is the overview. */
function relayTabPath(place: Place, name: string, tab = ""): string {
  return pagePath(place, "relays", name) + writeQuery({ tab });
}

export function RelayPage({ place, params, query }: PageProps): View {
  const name = params.name ?? "";
  const path = apiPath(place, "relays", name);
  const { data, error, isGone, reload, put } = useLoad<{
    relay: Relay;
    health?: HealthView;
    secretUse?: SecretUse | null;
    missing?: readonly MissingThing[];
    remembered?: { message: string } | null;
  }>(path, REFRESH_MS);
  const [isDeleting, setDeleting] = useState(false);
  const [saved, setSaved] = useState<SavedRelay | null>(null);
  const back = { back: "Relays", backTo: pagePath(place, "relays") };
  if (data === undefined) {
    return html`<${PageHead} title=${name} ...${back} />
      <${LoadingState} error=${error} isGone=${isGone} ...${back} onRetry=${reload} />`;
  }
  const { relay, health } = data;
  // Shows the response to the change, then loads the relay's new health at once.
  const change = (answer: { relay: Relay }): void => {
    put({ relay: answer.relay, ...(health === undefined ? {} : { health }) });
    invalidate(apiPath(place, "relays"));
  };
  const take = (answer: SavedRelay): void => {
    change(answer);
    setSaved(answer);
  };
  const asked = query.get("tab") ?? "";
  const tabs = tabsOf(place, relay, asked);
  const tab = tabs.some(({ name: known }) => known === asked) ? asked : "";
  return html`<${PageHead} title=${name} ...${back} aside=${health === undefined ? html`<${StateMark} state=${relay.state} />` : html`<${HealthMark} health=${health} />`}>
      <${SimulateButton} place=${place} relay=${relay} />
      <${PauseButton} place=${place} relay=${relay} onMoved=${change} />
      <button data-needs="edit_definitions" type="button" class="quiet-danger" onClick=${() => setDeleting(true)}>
        <${Icon} name="trash" size=${14} />Delete…</button>
    <//>
    <${TabLinks} label="Relay" tabs=${tabs} chosen=${tab} />
    <${BulkReplayLine} place=${place} relay=${name} />
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    ${tab !== "definition" && html`<${WarningList} warnings=${saved?.warnings ?? []} />`}
    ${tab === "" && html`<${RelayOverview} place=${place} relay=${relay} health=${health} missing=${data.missing ?? []} remembered=${data.remembered?.message ?? null} />`}
    ${tab === "missing" && html`<${RelayRejected} place=${place} name=${name} />`}
    ${tab === "definition" && html`<${RelayDefinition} key=${relay.id} place=${place} relay=${relay} warned=${saved?.warnings ?? []} onSaved=${take} />`}
    ${tab === "test" && html`<${RelayTest} key=${relay.id} place=${place} relay=${relay} query=${query} />`}
    ${tab === "history" && html`<${RelayHistory} key=${relay.id} place=${place} relay=${relay} onSaved=${take} />`}
    ${tab === "secrets" && html`<${RelaySecrets} place=${place} relay=${relay} query=${query} use=${data.secretUse ?? null} onChanged=${reload} />`}
    ${isDeleting && html`<${RelayDelete} place=${place} relay=${relay} onClose=${() => setDeleting(false)} />`}
    <${NewSecrets} saved=${saved} onClose=${() => setSaved(null)} />`;
}

/** Problems of a receiver that rejects requests, or that did. */
const REJECTING: readonly string[] = [
  "requests_rejected",
  "relay_refusing",
  "never_verified",
  "secret_missing",
];

/** Returns the tabs. A relay without a secret has no tab for secrets, and one that rejected no request has none for missing events. */
function tabsOf(place: Place, { name, receiverUrl, signingSecret, problems }: Relay, asked: string): Tab[] {
  const hasSecrets = receiverUrl !== undefined || signingSecret !== undefined;
  const hasMissing = asked === "missing" || problems.some(({ code }) => REJECTING.includes(code));
  const tabs = [
    ["", "Overview"],
    ...(hasMissing ? [["missing", "Missing events"]] : []),
    ["definition", "Definition"],
    ["test", "Test"],
    ["history", "History"],
    ...(hasSecrets ? [["secrets", "Secrets"]] : []),
  ] as const;
  return tabs.map(([tab = "", title = ""]) => ({ name: tab, title, href: relayTabPath(place, name, tab) }));
}

function PauseButton({
  place,
  relay: { name, state },
  onMoved,
}: {
  place: Place;
  relay: Relay;
  onMoved: (answer: { relay: Relay }) => void;
}): View {
  const { send, isSending } = useSend();
  const isActive = state === "active";
  const move = async (): Promise<void> => {
    const verb = isActive ? "pause" : "resume";
    const path = apiPath(place, "relays", name, verb);
    const done = `${isActive ? "Paused" : "Resumed"} ${name}.`;
    const sent = await send<{ relay: Relay }>({ method: "POST", path, done, tellsRefusal: true });
    if (sent !== null) onMoved(sent.answer);
  };
  return html`<button data-needs="edit_definitions" type="button" disabled=${isSending} onClick=${move}>
    <${Icon} name=${isActive ? "pause" : "play"} size=${14} />${isActive ? "Pause" : "Resume"}</button>`;
}

/** Shows the new secrets of a save once, until the user confirms that they are stored. */
function NewSecrets({ saved, onClose }: { saved: SavedRelay | null; onClose: () => void }): View {
  const secrets = saved === null ? [] : secretsOf(saved);
  if (secrets.length === 0) return null;
  return html`<${Dialog} title="New secret created" onClose=${onClose} mustAnswer>
    <${SecretOnce} secrets=${secrets} />
    <div class="dialog-actions">
      <button type="button" class="primary" onClick=${onClose}>I stored the secret</button></div><//>`;
}
