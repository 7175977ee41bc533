/** Choice of the request in view: an example, a pasted request, an event of the relay, or one of its cases. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { CaseView } from "../../src/rules/relay/relay-case.ts";
import type { Event, EventItem, Page } from "../base/answer.ts";
import { call, sentenceOf, writeQuery } from "../base/api.ts";
import { isObject, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { formatWhen, useNow } from "../base/time-words.ts";
import { escapeTricky } from "../base/tricky.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { notifyFailed } from "../component/toast.ts";
import { keepSeen, recallSeen, type SeenRequest, seenOfPaste } from "./seen-request.ts";

const SHOWN_EVENTS = 5;
/** Parts of a request whose sender's headers are not known. */
const UNSIGNED = { headers: null, search: "", url: null, receivedAt: null } as const;
const TYPE_CHARS = 60;
const EXAMPLE = "example";
const KEPT = "kept";

export interface Seen {
  /** null: an example that the service makes for the definition. */
  request: SeenRequest | null;
  /** Value of the selection. */
  chosen: string;
  choose(chosen: string, request: SeenRequest | null): void;
}

/** The request in view stays across a reload of this tab. `relay` is the saved relay, whose newest event is in view first; null: there is none. */
export function useSeenRequest(place: Place, key: string, relay: string | null): Seen {
  const [{ request, chosen }, setSeen] = useState(() => {
    const kept = recallSeen(key);
    return { request: kept, chosen: kept === null ? EXAMPLE : KEPT };
  });
  const isChosen = useRef(request !== null);
  const events = useLoad<Page<EventItem>>(relay === null ? null : eventsPath(place, relay)).data?.items;
  const choose = (next: string, picked: SeenRequest | null): void => {
    isChosen.current = true;
    keepSeen(key, picked);
    setSeen({ request: picked, chosen: next });
  };
  useEffect(() => {
    const newest = events?.find(({ truncated }) => !truncated);
    if (newest === undefined || isChosen.current) return;
    isChosen.current = true;
    loadEvent(place, newest.id).then(
      (picked) => picked !== null && setSeen({ request: picked, chosen: `event ${newest.id}` }),
      // The example stays in view.
      () => undefined,
    );
  }, [events]);
  return { request, chosen, choose };
}

function eventsPath(place: Place, relay: string): string {
  return apiPath(place, "events") + writeQuery({ relay, trigger: "receiver", limit: SHOWN_EVENTS });
}

/** Returns the request of a stored event; null if its payload is removed or truncated. Relay stores no headers. */
export async function loadEvent(place: Place, id: string): Promise<SeenRequest | null> {
  const { event } = await call<{ event: Event }>("GET", apiPath(place, "events", id));
  const { payload, truncated } = event;
  if (truncated || !isObject(payload) || payload.event === undefined) return null;
  const body = writeExact(payload.event, 2);
  return { ...UNSIGNED, body, contentType: "application/json", from: `event ${id}`, relay: event.relay.name };
}

export function RequestChoice({
  place,
  relay,
  seen: { request, chosen, choose },
}: {
  place: Place;
  relay: string | null;
  seen: Seen;
}): View {
  const [isPasting, setPasting] = useState(false);
  const now = useNow();
  const events = useLoad<Page<EventItem>>(relay === null ? null : eventsPath(place, relay)).data?.items ?? [];
  const cases =
    useLoad<{ cases: CaseView[] }>(relay === null ? null : apiPath(place, "relays", relay, "cases")).data
      ?.cases ?? [];
  const turn = useRef(0);
  const pick = async (next: string): Promise<void> => {
    turn.current += 1;
    const own = turn.current;
    if (next === "paste") return setPasting(true);
    if (next === EXAMPLE) return choose(EXAMPLE, null);
    const [kind, ...rest] = next.split(" ");
    const id = rest.join(" ");
    if (kind === "case") {
      const kept = cases.find(({ name }) => name === id);
      if (kept !== undefined)
        choose(next, { ...UNSIGNED, body: kept.body, contentType: kept.contentType, from: `case ${id}` });
      return;
    }
    try {
      const picked = await loadEvent(place, id);
      if (turn.current !== own) return;
      if (picked === null)
        notifyFailed("Relay did not store the whole body of this event. Choose another one.");
      else choose(next, picked);
    } catch (thrown) {
      notifyFailed(sentenceOf(thrown));
    }
  };
  const listed = events.filter(({ truncated }) => !truncated);
  const isListed =
    listed.some(({ id }) => chosen === `event ${id}`) || cases.some(({ name }) => chosen === `case ${name}`);
  const option = (value: string, words: string): View =>
    html`<option key=${value} value=${value} selected=${value === chosen}>${words}</option>`;
  return html`<label class="request-choice"><span>Request</span>
    <select value=${chosen} onChange=${(event: Event_) => void pick((event.target as HTMLSelectElement).value)}>
      ${request !== null && !isListed && option(chosen, capitalize(request.from))}
      ${listed.map(({ id, eventType, createdAt }) => option(`event ${id}`, `Event: ${escapeTricky((eventType ?? id).slice(0, TYPE_CHARS))}, ${formatWhen(createdAt, now)}`))}
      ${cases.map(({ name }) => option(`case ${name}`, `Case: ${name}`))}
      ${option(EXAMPLE, "An example from Relay")}
      ${option("paste", "Paste a request…")}
    </select></label>
    ${
      isPasting &&
      html`<${PasteDialog} onClose=${() => {
        setPasting(false);
        choose(chosen, request);
      }} onPaste=${(pasted: SeenRequest) => {
        setPasting(false);
        choose(KEPT, pasted);
      }} />`
    }`;
}

type Event_ = globalThis.Event;

function capitalize(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function PasteDialog({
  onPaste,
  onClose,
}: {
  onPaste: (request: SeenRequest) => void;
  onClose: () => void;
}): View {
  const [text, setText] = useState("");
  const keep = (event: Event_): void => {
    event.preventDefault();
    if (text.trim() !== "") onPaste(seenOfPaste(text));
  };
  return html`<${Dialog} title="Paste a request" onClose=${onClose} wide>
    <form class="stack" onSubmit=${keep}>
      <label class="field"><span>A curl command, headers and body, or only the body</span>
        <textarea class="mono" rows="10" spellcheck=${false} autocomplete="off" autofocus value=${text}
          onInput=${(event: InputEvent) => setText((event.target as HTMLTextAreaElement).value)}></textarea>
        <small>The request stays in this tab. Relay does not store it.</small></label>
      <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
        <button class="primary" disabled=${text.trim() === ""}>Use this request</button></div>
    </form><//>`;
}
