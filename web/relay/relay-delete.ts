/** Dialog that deletes a relay after the user typed its name. */

import { useState } from "preact/hooks";
import type { Warning } from "../../src/base/refusal.ts";
import type { Relay } from "../base/answer.ts";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone, notifyFailed } from "../component/toast.ts";

export function RelayDelete({
  place,
  relay,
  onClose,
}: {
  place: Place;
  relay: Relay;
  onClose: () => void;
}): View {
  const isLocal = place.environment === "local";
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const remove = async (event: Event): Promise<void> => {
    event.preventDefault();
    setSending(true);
    try {
      const path = apiPath(place, "relays", relay.name);
      const { warnings } = (await call<{ warnings: Warning[] } | undefined>("DELETE", path)) ?? {
        warnings: [],
      };
      if (warnings.length === 0) notifyDone(`Deleted ${relay.name}${isLocal ? " and its file" : ""}.`);
      else notifyFailed(`Deleted ${relay.name}. ${warnings.map(({ message }) => message).join(" ")}`);
      navigate(pagePath(place, "relays"));
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  return html`<${Dialog} title="Delete ${relay.name}?" onClose=${onClose}>
    <p>
      ${formatConsequence(relay, isLocal)}
      </p>
    <form class="stack" onSubmit=${remove}>
      <label class="field"><span>Type <b>${relay.name}</b> to confirm</span>
        <input value=${typed} autocomplete="off" autocapitalize="off" spellcheck=${false} autofocus onInput=${(event: InputEvent) => setTyped((event.target as HTMLInputElement).value)} />
        </label>
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
        <button class="danger" disabled=${isSending || typed !== relay.name}>
        ${isSending ? "Deleting…" : "Delete relay"}</button></div>
    </form>
  <//>`;
}

function formatConsequence({ trigger, name, origin }: Relay, isLocal: boolean): string {
  const stops =
    trigger === "receiver"
      ? "Its receiver URL responds with 404 at once, so requests of the provider are lost."
      : "The relay never runs again.";
  const waiting = " Waiting events become Failed.";
  const { kind, promotedFrom } = origin;
  const synced =
    promotedFrom !== undefined
      ? ` The relay stays in ${promotedFrom}, and the next promote creates it again.`
      : kind === "file"
        ? " Its file stays, and the next sync creates it again."
        : "";
  const file = isLocal ? ` Its file relays/${name}.json is also deleted.` : synced;
  return `${stops}${waiting} Its secrets are permanently removed. Its events stay for 30 days.${file}`;
}
