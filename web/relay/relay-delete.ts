/** Deletes a relay, once its name is typed. */

import { useState } from "preact/hooks";
import type { Relay } from "../ground/answer.ts";
import { call, sentenceOf } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { navigate } from "../ground/route.ts";
import { Dialog } from "../part/dialog.ts";
import { Notice } from "../part/notice.ts";
import { Sentence } from "../part/sentence.ts";
import { tellDone } from "../part/toast.ts";

export function RelayDelete({
  place,
  relay,
  onClose,
}: {
  place: Place;
  relay: Relay;
  onClose: () => void;
}): View {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const remove = async (event: Event): Promise<void> => {
    event.preventDefault();
    setSending(true);
    try {
      await call("DELETE", apiPath(place, "relays", relay.name));
      tellDone(`Deleted ${relay.name}.`);
      navigate(pagePath(place, "relays"));
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  return html`<${Dialog} title="Delete ${relay.name}?" onClose=${onClose}>
    <p>
      ${sayConsequence(relay)}
      </p>
    <form class="stack" onSubmit=${remove}>
      <label class="field"><span>Type <b>${relay.name}</b> to delete it</span>
        <input value=${typed} autocomplete="off" autocapitalize="off" spellcheck=${false} autofocus onInput=${(event: InputEvent) => setTyped((event.target as HTMLInputElement).value)} />
        </label>
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
        <button class="danger" disabled=${isSending || typed !== relay.name}>
        ${isSending ? "Deleting…" : "Delete relay"}</button></div>
    </form>
  <//>`;
}

function sayConsequence({ trigger, origin }: Relay): string {
  const stops =
    trigger === "receiver"
      ? "Its receiver URL answers 404 at once, so the provider’s calls are lost."
      : "It never runs again.";
  const file = origin.kind === "file" ? " Its file stays, and the next sync makes it again." : "";
  return `${stops} Its secrets are gone for good; its events stay for 30 days.${file}`;
}
