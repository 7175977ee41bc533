/**
 * The typed search: `person:carol@example.com`, `relay:orders`, `state:dead`, `trigger:schedule`, `reason:connection_failed` and `mapped.order:cs_live` become part of the
 * filter with Enter; what is left is text that is found in an id or a payload, once the typing rests.
 */
import { html, type View } from "../base/html.ts";
import { setQuery } from "../base/route.ts";
import { Icon } from "../component/icon.ts";
import { useTyped } from "../component/use-typed.ts";

const REST_MS = 250;
const LABEL = "Find text or an event id";
const TOKEN = /(?:^|\s)(person|relay|state|trigger|reason|mapped\.[A-Za-z0-9_]{1,64}):("[^"]*"|\S+)/g;
/** Somebody may be about to write one. */
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

/** What a typed line asks for, as the address has it; what names nothing is text. */
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
