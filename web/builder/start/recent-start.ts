/** Start of a relay from an event of the environment. A rejected request is listed too, but Relay stores no body of it. */
import { useState } from "preact/hooks";
import type { EventItem, Page, RecentRequest } from "../../base/answer.ts";
import { sentenceOf, writeQuery } from "../../base/api.ts";
import { html, type View } from "../../base/html.ts";
import { apiPath, type Place } from "../../base/place.ts";
import { setQuery } from "../../base/route.ts";
import { useLoad } from "../../base/use-load.ts";
import { LoadingState, Notice } from "../../component/notice.ts";
import { SafeText } from "../../component/safe-text.ts";
import { SearchBox } from "../../component/search-box.ts";
import { Sentence } from "../../component/sentence.ts";
import { StateMark } from "../../component/state-mark.ts";
import { Ago } from "../../component/time.ts";
import { loadEvent } from "../request-choice.ts";
import type { SeenRequest } from "../seen-request.ts";

const SHOWN = 30;

type Line = { at: string } & ({ event: EventItem } | { rejected: RecentRequest });

export function RecentStart({
  place,
  onRequest,
}: {
  place: Place;
  onRequest: (request: SeenRequest) => void;
}): View {
  const [words, setWords] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const eventsPath = apiPath(place, "events") + writeQuery({ trigger: "receiver", limit: SHOWN, q: words });
  const callsPath = apiPath(place, "calls") + writeQuery({ outcome: "refused", limit: SHOWN });
  const events = useLoad<Page<EventItem>>(eventsPath);
  const calls = useLoad<Page<RecentRequest>>(callsPath);
  const lines: Line[] = [
    ...(events.data?.items ?? []).map((event) => ({ at: event.createdAt, event })),
    ...(calls.data?.items ?? [])
      .filter((one) => matches(one, words))
      .map((rejected) => ({ at: rejected.at, rejected })),
  ];
  lines.sort((one, other) => (one.at < other.at ? 1 : -1));
  const take = async (id: string): Promise<void> => {
    setProblem(null);
    try {
      const request = await loadEvent(place, id);
      if (request === null)
        setProblem(
          "Relay did not store the whole body of this event, because it is larger than 32 KB. Choose another one, or send the request to a capture URL.",
        );
      else onRequest(request);
    } catch (thrown) {
      setProblem(sentenceOf(thrown));
    }
  };
  const retry = (): void => {
    events.reload();
    calls.reload();
  };
  const error = events.error ?? calls.error;
  if (events.data === undefined && words === "")
    return html`<${LoadingState} error=${error} rows=${4} onRetry=${retry} />`;
  return html`<div class="stack">
    <${SearchBox} value=${words} label="Search events and requests" onValue=${setWords} />
    ${problem !== null && html`<${Notice} kind="bad"><${Sentence} text=${problem} /><//>`}
    ${
      lines.length === 0
        ? html`<p class="none">${words === "" ? "No request arrived yet. Send one to a capture URL, or paste one." : "No request has these words."}</p>`
        : html`<ul class="start-list">${lines.map((line) =>
            "event" in line
              ? html`<li key=${line.event.id}><button type="button" class="bare start-line" onClick=${() => void take(line.event.id)}>
                <span class="clip"><b><${SafeText} text=${line.event.eventType ?? "event"} limit=${80} /></b> <span class="quiet">${line.event.relay.name}</span></span>
                <span class="quiet"><${Ago} at=${line.at} /></span>
                <span class="clip start-more"><${SafeText} text=${line.event.preview ?? line.event.id} limit=${160} /></span></button></li>`
              : html`<${RejectedLine} key=${line.rejected.id} call=${line.rejected} />`,
          )}</ul>`
    }</div>`;
}

function matches({ relay, code, claimed }: RecentRequest, words: string): boolean {
  const text = `${relay} ${code} ${claimed?.type ?? ""} ${claimed?.id ?? ""}`.toLowerCase();
  return text.includes(words.trim().toLowerCase());
}

/** Shows a rejected request. Its sender must send it again, because Relay stores no body of a request that nothing verified. */
function RejectedLine({ call: { at, code, relay, claimed } }: { call: RecentRequest }): View {
  const [isOpen, setOpen] = useState(false);
  return html`<li><button type="button" class="bare start-line" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>
    <span class="clip"><${StateMark} state="refused" word="Rejected" /> <b><${SafeText} text=${claimed?.type ?? code} limit=${80} /></b> <span class="quiet">${relay}</span></span>
    <span class="quiet"><${Ago} at=${at} /></span></button>
    ${
      isOpen &&
      html`<div class="start-note"><p>Relay stores no body of a rejected request. Let the sender send it again to a capture URL, or paste it from the delivery list of the sender.</p>
        <div class="form-actions"><button type="button" onClick=${() => setQuery({ start: "capture" })}>Capture the next request</button>
          <button type="button" onClick=${() => setQuery({ start: "paste" })}>Paste it</button></div></div>`
    }</li>`;
}
