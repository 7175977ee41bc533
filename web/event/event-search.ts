/**
 * Search of the event list. Enter moves tokens such as `person:carol@example.com`, `relay:orders`, `state:dead`,
 * `trigger:schedule`, `reason:connection_failed` and `mapped.order:cs_live` into the filter. The rest is text that is
 * found in ids and payloads, once the user stops typing.
 */
import { mayIn, session } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { Icon } from "../component/icon.ts";
import { useTyped } from "../component/use-typed.ts";

const REST_MS = 250;
/** The label for a member who sees payloads, and for one who does not. */
const LABELS = {
  all: "Find text or an event id",
  ids: "Find an event id or the address of a person",
} as const;
const TOKEN = /(?:^|\s)(person|relay|state|trigger|reason|mapped\.[A-Za-z0-9_]{1,64}):("[^"]*"|\S+)/g;
/** Matches a token that the user may still be typing. */
const MAY_BE_TOKEN = /(?:^|\s)(?:person|relay|state|trigger|reason|mapped\.[A-Za-z0-9_]*):/;
const ID = "event-search-words";

export function EventSearch({ place, query }: { place: Place; query: URLSearchParams }): View {
  const known = useCell(session);
  const seesPayloads = known !== undefined && mayIn(known, place).includes("read_payloads");
  const label = seesPayloads ? LABELS.all : LABELS.ids;
  const value = query.get("q") ?? "";
  const search = (q: string): void => setQuery({ q });
  // Without the permission, part of an id or address finds nothing, so the search waits for Enter.
  const waits = seesPayloads ? MAY_BE_TOKEN : /./;
  const { typed, onType, replace } = useTyped(value, search, { restMs: REST_MS, waits });
  const take = (event: KeyboardEvent): void => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const read = readSearch(typed);
    replace(read.q);
    setQuery(read);
  };
  return html`<label class="search"><${Icon} name="search" size=${14} />
    <input type="search" data-search aria-label=${label} placeholder=${seesPayloads ? "person:… mapped.order:… or text" : "person:… or an event id"} aria-describedby=${ID} value=${typed} autocomplete="off" spellcheck=${false}
      onInput=${onType} onKeyDown=${take} />
    <kbd aria-hidden="true">/</kbd><span id=${ID} class="off-screen">${label}. With Enter also person:address, relay:name, state:dead, trigger:schedule, reason:code${seesPayloads && ", mapped.name:beginning of its value"}.</span></label>`;
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
