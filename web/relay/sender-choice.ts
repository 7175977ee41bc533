/**
 * Known senders as the first step of a new relay: the recipe, an example event, where the sender shows its secret and
 * its webhooks, and common mistakes.
 */
import type { SenderLine, SenderView } from "../../src/rules/senders/sender-view.ts";
import type { Page } from "../base/answer.ts";
import { writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { LoadingState } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";

/** Returns the senders in alphabetical order. */
export function useSenders(): readonly SenderLine[] {
  return useLoad<Page<SenderLine>>("/api/senders?limit=200").data?.items ?? [];
}

export function senderPath(name: string): string {
  return `/api/senders/${encodeURIComponent(name)}`;
}

export function SenderPreview({ name, onTake }: { name: string; onTake: (text: string) => void }): View {
  const { data, error, reload } = useLoad<{ sender: SenderView }>(senderPath(name));
  if (data === undefined)
    return html`<section class="card template-preview"><${LoadingState} error=${error} onRetry=${reload} /></section>`;
  const { sender } = data;
  const { title, summary, signsEvent, definition, example, eventTypes, pitfalls, docs } = sender;
  const text = writeExact(definition, 2);
  return html`<section class="card template-preview" aria-label="Preview of ${title}">
    <div class="block-head"><h2>${title}</h2>
      <button type="button" class="primary" onClick=${() => onTake(text)}>Use this sender</button></div>
    <p>${summary} ${signsEvent ? "The sender signs each event." : "The sender does not sign the event. The relay can write records and call URLs; other actions need an opt-in."}</p>
    <${SenderPlaces} sender=${sender} />
    <h3>First relay</h3>
    <pre class="diff version-text" tabindex="0" aria-label="Definition">${text}</pre>
    <h3>Example event</h3>
    <pre class="diff version-text" tabindex="0" aria-label="Example event">${pretty(example.body)}</pre>
    <h3>Event types</h3>
    <dl class="facts sender-types">${eventTypes.map(
      ({ type, meaning }) =>
        html`<div key=${type}><dt><code>${type}</code></dt><dd><${Sentence} text=${meaning} /></dd></div>`,
    )}</dl>
    <h3>Pitfalls</h3>
    <ul class="sender-pitfalls">${pitfalls.map((pitfall) => html`<li key=${pitfall}><${Sentence} text=${pitfall} /></li>`)}</ul>
    <p class="quiet"><a href=${docs} target="_blank" rel="noreferrer noopener">${title}’s own documentation</a></p>
  </section>`;
}

/** Shows where the sender's console has the receiver URL and the secret. */
export function SenderPlaces({ sender: { register, secret } }: { sender: SenderView }): View {
  return html`<dl class="facts sender-places">
    <div><dt>Receiver URL</dt><dd><${Sentence} text=${register} /></dd></div>
    <div><dt>Secret</dt><dd><${Sentence} text=${secret.where} /></dd></div></dl>`;
}

/** Formats JSON with indents, and a form with one field per line. */
function pretty(body: string): string {
  if (/^[[{]/.test(body)) return writeExact(JSON.parse(body), 2);
  return [...new URLSearchParams(body)].map(([name, value]) => `${name}=${value}`).join("\n");
}
