/** A time in words that keeps itself right, with the exact time as its title. */
import { html, type View } from "../ground/html.ts";
import { sayExactly, sayWhen, useNow } from "../ground/time-words.ts";

export function Ago({ at, none = "never" }: { at: string | null | undefined; none?: string }): View {
  const now = useNow();
  if (at === null || at === undefined) return html`<span class="quiet">${none}</span>`;
  return html`<time datetime=${at} title=${sayExactly(at)}>${sayWhen(at, now)}</time>`;
}
