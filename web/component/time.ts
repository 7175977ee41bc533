/** Times in words that update themselves, each with the exact time as its title. */
import { html, type View } from "../base/html.ts";
import { formatFullTime, formatMoment, formatWhen, useNow } from "../base/time-words.ts";

export function Ago({ at, none = "never" }: { at: string | null | undefined; none?: string }): View {
  const now = useNow();
  if (at === null || at === undefined) return html`<span class="quiet">${none}</span>`;
  return html`<time datetime=${at} title=${formatFullTime(at)}>${formatWhen(at, now)}</time>`;
}

/** Shows "03:12" for today and "21 Nov, 03:12" for earlier days. */
export function Moment({ at }: { at: string }): View {
  const now = useNow(60_000);
  return html`<time datetime=${at} title=${formatFullTime(at)}>${formatMoment(at, now)}</time>`;
}
