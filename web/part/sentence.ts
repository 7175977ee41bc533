/** A sentence of the service: names in backticks stand as code. What it holds from outside is shown as safely as any text. */
import { html, type View } from "../ground/html.ts";
import { escapeTricky, SafeText } from "./safe-text.ts";

const NAMED = /`([^`\n]{1,200})`/;
const SHORT_CHARS = 2_000;

export function Sentence({ text }: { text: string }): View {
  if (text.length > SHORT_CHARS) return html`<${SafeText} text=${text} />`;
  return html`<bdi class="safe">${text
    .split(NAMED)
    .map((part, at) =>
      at % 2 === 1 ? html`<code>${escapeTricky(part)}</code>` : escapeTricky(part),
    )}</bdi>`;
}
