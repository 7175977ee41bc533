/**
 * A sentence of the service: names in backticks stand as code, times as the reader says them, and a command of the terminal as one that is
 * chosen whole by a click, so that it can be copied. What it holds from outside is shown as safely as any text.
 */
import { html, type View } from "../ground/html.ts";
import { readMoment, SAID_TIME } from "../ground/time-words.ts";
import { escapeTricky, SafeText } from "./safe-text.ts";
import { Moment } from "./time.ts";

const SHORT_CHARS = 2_000;
/** With what is listed below, the beginning of a command; what merely speaks of a relay has no such two words. */
const NOUN =
  "(?:alerts|apps|approvals|audit|calls|catalog|domain|emails|events|grants|keys|mail|owners|people|problems|receipts|records|relays|replays|settings|subscriptions)";
const VERB =
  "(?:list|show|set-secret|set|get|delete|replay|retry|expunge|resume|pause|stop|start|revoke|verify|resolve|create|grant|rotate-secret|end-overlap|send-again|history|restore|funnel)";
const ALONE = "(?:backup|changes|dev|doctor|init|login|move|promote|pull|restore|send|serve|sync|validate)";
/** Words with which the sentence goes on behind a command. */
const GOES_ON =
  "(?:after|again|and|anew|as|ask|asks|before|by|does|ends|finds|for|from|if|in|lists?|looks|makes?|name|names|of|once|or|puts|run|runs|say|says|shows?|so|tells?|that|then|to|until|what|when|which|while|who|with)";
const WORD = String.raw`(?!${GOES_ON}\b)(?:<[^<>]{1,40}>|'[^']{0,60}'|[\w-][\w@/=…-]*(?:[.:][\w-]+)*)`;
const COMMAND = String.raw`(?<![Tt]he )\brelay (?:${NOUN} ${VERB}|${ALONE})\b(?: ${WORD}){0,6}`;
const NAMED = "`[^`\\n]{1,200}`";
const MARKED = new RegExp(`(${NAMED}|${SAID_TIME}|${COMMAND})`);

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
