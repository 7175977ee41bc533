/** Alert channels of an environment: where alerts go in addition to mail. Each shows its last result and can be tested, changed and removed. */
import { useState } from "preact/hooks";
import type { ChannelKindView, ChannelView } from "../../src/platform/channel/channel.ts";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { ChannelDialog } from "./channel-dialog.ts";
import { formatKind } from "./kind-text.ts";

const REFRESH_MS = 10_000;

interface Listed {
  channels: ChannelView[];
  kinds: ChannelKindView[];
}

export function ChannelList({ place }: { place: Place }): View {
  const { data, error, reload } = useLoad<Listed>(apiPath(place, "alert-channels"), REFRESH_MS);
  const [isAdding, setAdding] = useState(false);
  const [changing, setChanging] = useState<ChannelView | null>(null);
  const [removing, setRemoving] = useState<ChannelView | null>(null);
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${3} onRetry=${reload} />`;
  const { channels, kinds } = data;
  const close = (): void => {
    setAdding(false);
    setChanging(null);
    reload();
  };
  return html`<p class="tab-lead">A channel gets the alerts of this environment in addition to mail, and a message when they are resolved. Messages contain no value of a payload. <${DocsLink} to=${DOCS.channels}>How to set up each service<//></p>
    <div class="tab-actions"><button data-needs="edit_settings" type="button" class="primary" onClick=${() => setAdding(true)}><${Icon} name="plus" size=${14} />Add channel</button></div>
    ${
      channels.length === 0
        ? html`<${EmptyState} icon="attention" title="No channels yet"><p>Alerts are mailed to the owners. Add a channel for Slack, Discord, Telegram, ntfy, PagerDuty or your own webhook.</p><//>`
        : html`<div class="settings">${channels.map(
            (channel) =>
              html`<${ChannelCard} key=${channel.id} place=${place} channel=${channel} kind=${kinds.find(({ kind }) => kind === channel.kind)} onChange=${() => setChanging(channel)} onRemove=${() => setRemoving(channel)} />`,
          )}</div>`
    }
    ${(isAdding || changing !== null) && html`<${ChannelDialog} place=${place} kinds=${kinds} channel=${changing} onClose=${close} />`}
    ${removing !== null && html`<${EndDialog} title="Remove ${removing.name}?" words="The channel gets no more alerts, and Relay deletes its secrets. Alerts stay in the dashboard." act="Remove channel" done="Channel removed." method="DELETE" path=${apiPath(place, "alert-channels", removing.id)} changes=${[apiPath(place, "alert-channels"), apiPath(place, "overview"), apiPath(place, "problems")]} onClose=${() => setRemoving(null)} />`}`;
}

interface Tested {
  ok: boolean;
  message: string;
}

function ChannelCard({
  place,
  channel,
  kind,
  onChange,
  onRemove,
}: {
  place: Place;
  channel: ChannelView;
  kind: ChannelKindView | undefined;
  onChange: () => void;
  onRemove: () => void;
}): View {
  const { id, name, codes, fields, triedAt, result, failingAt } = channel;
  const [isTesting, setTesting] = useState(false);
  const [tested, setTested] = useState<Tested | null>(null);
  const test = async (): Promise<void> => {
    setTesting(true);
    setTested(null);
    try {
      setTested(await call<Tested>("POST", apiPath(place, "alert-channels", id, "test"), {}));
    } catch (thrown) {
      setTested({ ok: false, message: sentenceOf(thrown) });
    }
    setTesting(false);
    for (const path of ["alert-channels", "overview", "problems"]) invalidate(apiPath(place, path));
  };
  return html`<section class="card setting" aria-label=${name}><h2><${SafeText} text=${name} limit=${60} /></h2>
    <p>${kind?.title ?? channel.kind}${Object.entries(fields).map(([field, value]) => html` · <span class="quiet">${field}</span> <code>${value}</code>`)}</p>
    <p>${codes === null ? "All alerts" : codes.map((code) => formatKind(code) ?? code).join(" · ")}</p>
    <p>${
      failingAt !== null
        ? html`<${StateMark} state="failed" word="Fails" /> since <${Ago} at=${failingAt} />`
        : triedAt === null
          ? html`<${StateMark} state="skipped" word="Nothing sent yet" />`
          : html`<span class="quiet">Last result:</span>`
    }${triedAt !== null && html` <span class="quiet"><${Sentence} text=${result ?? ""} /> <${Ago} at=${triedAt} /></span>`}</p>
    <div class="form-actions">
      <button data-needs="edit_settings" type="button" disabled=${isTesting} onClick=${() => void test()}>${isTesting ? "Sending…" : "Send a test"}</button>
      ${kind !== undefined && html`<button data-needs="edit_settings" type="button" onClick=${onChange}>Change…</button>`}
      <button data-needs="edit_settings" type="button" class="quiet-danger" aria-label="Remove… ${name}" onClick=${onRemove}>Remove…</button></div>
    ${tested !== null && html`<${Notice} kind=${tested.ok ? "good" : "bad"}><${Sentence} text=${tested.ok ? `The service took the test. ${tested.message}` : tested.message} /><//>`}
  </section>`;
}
