/**
 * Search of the event list. Enter moves tokens such as `person:carol@example.com`, `relay:orders`, `state:dead`,
 * `trigger:schedule`, `reason:connection_failed` and `mapped.order:cs_live` into the filter. The rest is text that is
 * found in ids and payloads, once the user stops typing.
 */
import { html, type View } from "../base/html.ts";
import { setQuery } from "../base/route.ts";
import { Icon } from "../component/icon.ts";
import { useTyped } from "../component/use-typed.ts";

const REST_MS = 250;
const LABEL = "Find text or an event id";
const TOKEN = /(?:^|\s)(person|relay|state|trigger|reason|mapped\.[A-Za-z0-9_]{1,64}):("[^"]*"|\S+)/g;
/** Matches a token that the user may still be typing. */
const MAY_BE_TOKEN = /(?:^|\s)(?:person|relay|state|trigger|reason|mapped\.[A-Za-z0-9_]*):/;
const ID = "event-search-words";

export function EventSearch({ query }: { query: URLSearchParams }): View {
  const value = query.get("q") ?? "";
  const tell = (q: string): void => setQuery({ q });
  const { typed, onType, replace } = useTyped(value, tell, { restMs: REST_MS, waits: MAY_BE_TOKEN });
  const take = (event: KeyboardEvent): void => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const read = readSearch(typed);
    replace(read.q);
    setQuery(read);
  };
  return html`<label class="search"><${Icon} name="search" size=${14} />
    <input type="search" data-search aria-label=${LABEL} placeholder="person:… mapped.order:… or text" aria-describedby=${ID} value=${typed} autocomplete="off" spellcheck=${false}
      onInput=${onType} onKeyDown=${take} />
    <kbd aria-hidden="true">/</kbd><span id=${ID} class="off-screen">Text or an event id. With Enter also person:address, relay:name, state:dead, trigger:schedule, reason:code, mapped.name:beginning of its value.</span></label>`;
}

/** Returns the query fields of a typed line. Anything that is not a token is text. */
function readSearch(line: string): Record<string, string> & { q: string } {
  const found: Record<string, string> = {};
  const q = line.replaceAll(TOKEN, (_, name: string, given: string) => {
    const text = given.startsWith('"') ? given.slice(1, -1) : given;
    if (name.startsWith("mapped.")) found.mapped = `${name.slice("mapped.".length)}:${text}`;
    else found[name] = text;
    return "";
  });
  return { ...found, q: q.trim() };
}
