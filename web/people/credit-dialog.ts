/** Dialog that adds or spends credits. Pressing the button several times changes the balance once. */
import { useRef, useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

export function CreditDialog({
  place,
  now,
  onClose,
}: {
  place: Place;
  now: PersonNow;
  onClose: () => void;
}): View {
  const { person, credits } = now;
  const [way, setWay] = useState<1 | -1>(1);
  const { send, isSending, error } = useSend();
  // One idempotency key for each amount and reason, so that a repeated send after a lost response applies once.
  const sent = useRef({ what: "", key: "" });
  const change = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const amount = way * Number(data.get("amount"));
    const reason = String(data.get("reason") ?? "").trim();
    const what = `${amount} ${reason}`;
    if (sent.current.what !== what)
      sent.current = { what, key: `dashboard-${crypto.getRandomValues(new Uint32Array(4)).join("")}` };
    const answer = await send<{ balance: number }>({
      method: "POST",
      path: apiPath(place, "persons", person.id, "credits"),
      body: { amount, reason, key: sent.current.key },
      changes: [apiPath(place, "persons")],
      done: ({ balance }) => `${person.email} has ${formatNumber(balance)} credits.`,
    });
    if (answer !== null) onClose();
  };
  return html`<${Dialog} title="Credits of ${person.email}" onClose=${onClose}><form class="stack" onSubmit=${change}>
    <p class="quiet">They have ${formatNumber(credits)} now.</p>
    <fieldset class="radios"><legend class="off-screen">Change</legend>
      <label><input type="radio" name="way" checked=${way === 1} onChange=${() => setWay(1)} />Add</label>
      <label><input type="radio" name="way" checked=${way === -1} onChange=${() => setWay(-1)} />Spend</label></fieldset>
    <label class="field"><span>Amount</span><input name="amount" type="number" min="1" step="1" required autofocus /></label>
    <label class="field"><span>Reason</span><input name="reason" required autocomplete="off" />
      <small>The ledger stores the reason permanently.</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "One moment…" : way === 1 ? "Add" : "Spend"}</button></div>
  </form><//>`;
}
