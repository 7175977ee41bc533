/**
 * Message of the service with formatted parts: names in backticks as code, times in the reader's zone, and commands as
 * links to the page that does the same. A command without a page is code that one click selects. External text in it is
 * escaped.
 */

import { NAMED_COMMAND } from "../../src/base/shared/named-command.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath, readPlace } from "../base/place.ts";
import { useRoute } from "../base/route.ts";
import { readMoment, SAID_TIME } from "../base/time-words.ts";
import { pageOfCommand } from "./command-page.ts";
import { escapeTricky, SafeText } from "./safe-text.ts";
import { Moment } from "./time.ts";

const SHORT_CHARS = 2_000;
const NAMED = "`[^`\\n]{1,200}`";
const MARKED = new RegExp(`(${NAMED}|${SAID_TIME}|${NAMED_COMMAND})`);

/** `isLink`: the whole sentence is a link, so it contains no other links. `place`: the environment that the sentence is about, if it is not the current one. */
export function Sentence({
  text,
  isLink = false,
  place,
}: {
  text: string;
  isLink?: boolean;
  place?: Place | undefined;
}): View {
  const { path: shownPath, query } = useRoute();
  const path = place === undefined ? shownPath : pagePath(place, "home");
  if (text.length > SHORT_CHARS) return html`<${SafeText} text=${text} />`;
  const asked = query.toString();
  const leads = !isLink && readPlace(path) !== null;
  const current = leads ? { path, address: asked === "" ? path : `${path}?${asked}` } : null;
  return html`<bdi class="safe">${text
    .split(MARKED)
    .map((part, at, parts) =>
      at % 2 === 1 ? mark(part, current) : escapeTricky(leadTo(part, parts[at + 1] ?? "", current)),
    )}</bdi>`;
}

/** Replaces the word before a command that a page's name replaces: "with relay mail set" becomes "in Mail". */
function leadTo(text: string, next: string, current: CurrentPage | null): string {
  const name = next.startsWith("`") ? next.slice(1, -1) : next;
  const page = current !== null && name.startsWith("relay ") ? pageOfCommand(name, current.path) : null;
  if (current === null || page === null) return text;
  if (page.button !== null && page.href.split("?")[0] === current.path) return text;
  return text.replace(/\bwith $/, page.href === current.address ? "on " : "in ");
}

interface CurrentPage {
  path: string;
  address: string;
}

function mark(part: string, current: CurrentPage | null): View {
  const at = readMoment(part);
  if (at !== null) return html`<${Moment} at=${at} />`;
  const name = part.startsWith("`") ? part.slice(1, -1) : part;
  if (!name.startsWith("relay ")) return html`<code>${escapeTricky(name)}</code>`;
  const page = current === null ? null : pageOfCommand(name, current.path);
  if (current === null || page === null)
    return html`<code class="command" title="A terminal command. Click it to select it.">${escapeTricky(name)}</code>`;
  const { words, href, button, needs } = page;
  const title = `On the command line: ${name}`;
  if (button !== null && href.split("?")[0] === current.path)
    return html`<span title=${title}><b>${button}</b> on this page</span>`;
  if (href === current.address) return html`<span title=${title}>this page</span>`;
  return html`<a class="command-page" href=${href} title=${title}>${escapeTricky(words)}${button !== null && html`<span data-needs=${needs}> › ${button}</span>`}</a>`;
}

/** Shows the commands that the sentences name, for users with a terminal. Shows nothing if they name none. */
export function CommandLine({ texts }: { texts: readonly (string | null)[] }): View {
  const named = texts.flatMap((text) => text?.match(new RegExp(NAMED_COMMAND, "g")) ?? []);
  if (named.length === 0) return null;
  return html`<details class="by-command"><summary>On the command line</summary>
    ${[...new Set(named)].map((command) => html`<code key=${command} class="command">${escapeTricky(command)}</code>`)}</details>`;
}
