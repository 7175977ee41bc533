/**
 * A sentence of the service: names in backticks stand as code, times as the reader says them, and a command of the terminal as one that is
 * chosen whole by a click, so that it can be copied. What it holds from outside is shown as safely as any text.
 */
import { html, type View } from "../ground/html.ts";
import { readMoment, SAID_TIME } from "../ground/time-words.ts";
import { NAMED_COMMAND } from "./named-command.ts";
import { escapeTricky, SafeText } from "./safe-text.ts";
import { Moment } from "./time.ts";

const SHORT_CHARS = 2_000;
const NAMED = "`[^`\\n]{1,200}`";
const MARKED = new RegExp(`(${NAMED}|${SAID_TIME}|${NAMED_COMMAND})`);

export function Sentence({ text }: { text: string }): View {
  if (text.length > SHORT_CHARS) return html`<${SafeText} text=${text} />`;
  return html`<bdi class="safe">${text
    .split(MARKED)
    .map((part, at) => (at % 2 === 1 ? mark(part) : escapeTricky(part)))}</bdi>`;
}

function mark(part: string): View {
  const at = readMoment(part);
  if (at !== null) return html`<${Moment} at=${at} />`;
  const name = part.startsWith("`") ? part.slice(1, -1) : part;
  return name.startsWith("relay ")
    ? html`<code class="command" title="A command for the terminal: a click chooses it whole">${escapeTricky(name)}</code>`
    : html`<code>${escapeTricky(name)}</code>`;
}
