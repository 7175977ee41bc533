/** Button and dialog that keep a request as a case of a relay, with its result now. */
import { useState } from "preact/hooks";
import type { CaseView } from "../../src/rules/relay/relay-case.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";
import { formatCaseResult } from "./case-words.ts";

/** The request of a case, as the service takes it. */
export interface CaseRequest {
  body: string;
  contentType?: string;
}

export function KeepCase({
  place,
  name,
  request,
}: {
  place: Place;
  name: string;
  request: CaseRequest;
}): View {
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const { isSending, send, error, clear } = useSend();
  const close = (): void => {
    setOpen(false);
    clear();
  };
  const keep = async (event: Event): Promise<void> => {
    event.preventDefault();
    const path = apiPath(place, "relays", name, "cases");
    const done = await send<{ case: CaseView }>({
      method: "PUT",
      path: `${path}/${encodeURIComponent(typed)}`,
      body: request,
      changes: [path],
    });
    if (done === null) return;
    const { case: kept } = done.answer;
    close();
    setTyped("");
    notifyDone(`Kept the case ${kept.name}: ${formatCaseResult(kept.expected)}.`);
  };
  return html`<button data-needs="edit_definitions" type="button" onClick=${() => setOpen(true)}>Keep as a case…</button>
    ${
      isOpen &&
      html`<${Dialog} title="Keep as a case" onClose=${close}>
        <p>Relay keeps this request with its result now. Each save of the relay runs the case without effect, and asks you if the result changes.</p>
        <form class="stack" onSubmit=${keep}>
          <label class="field"><span>Name of the case</span>
            <input value=${typed} placeholder="paid" autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="63" autofocus
              onInput=${(event: InputEvent) => setTyped((event.target as HTMLInputElement).value.trim())} /></label>
          <p class="quiet">A case with this name is replaced.</p>
          ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
          <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
            <button class="primary" disabled=${isSending || typed === ""}>${isSending ? "Keeping…" : "Keep case"}</button></div>
        </form>
      <//>`
    }`;
}
