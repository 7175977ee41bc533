/**
 * Test of a relay without effects: an example, a pasted request or an event that arrived is explained step by step. A
 * real test event has every effect, so production does not offer it.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { readPastedCall } from "../../src/base/shared/pasted-request.ts";
import type { Simulation } from "../../src/insight/simulate/step.ts";
import type { Relay } from "../base/answer.ts";
import { call as ask, sentenceOf, writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { Notice, Skeleton } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { ExplainedSteps } from "./explained-steps.ts";
import { type CaseRequest, KeepCase } from "./keep-case.ts";
import { RelayCases } from "./relay-cases.ts";
import { formatBody, formatSentTest, type SentTest } from "./sent-test.ts";
import { PickedRequest, StoredEvents } from "./test-pick.ts";

type Way = "example" | "paste" | "event";

interface Props {
  place: Place;
  relay: Relay;
  query: URLSearchParams;
}

const WAYS: readonly (readonly [Way, string])[] = [
  ["example", "An example"],
  ["paste", "A pasted request"],
  ["event", "A stored event"],
];

/** Result of the last test. */
interface Tried {
  isAsking: boolean;
  shown: Simulation | null;
  error: string | null;
}

const UNTRIED: Tried = { isAsking: false, shown: null, error: null };

export function RelayTest({ place, relay, query }: Props): View {
  const { name, trigger } = relay;
  const event = query.get("event") ?? "";
  const call = query.get("call") ?? "";
  const chosen = (query.get("with") ?? "") as Way | "";
  const way: Way = event !== "" ? "event" : chosen !== "" ? chosen : call === "" ? "example" : "paste";
  const [text, setText] = useState("");
  const [person, setPerson] = useState("");
  const [{ isAsking, shown, error }, setTried] = useState(UNTRIED);
  const turn = useRef(0);
  const asked = askedOf({ way, text, person, event, trigger });
  const explain = async (): Promise<void> => {
    turn.current += 1;
    const own = turn.current;
    setTried({ ...UNTRIED, isAsking: true });
    let tried: Tried;
    try {
      const path = apiPath(place, "relays", name, "explain");
      const { explanation } = await ask<{ explanation: Simulation }>("POST", path, asked);
      tried = { ...UNTRIED, shown: explanation };
    } catch (thrown) {
      tried = { ...UNTRIED, error: sentenceOf(thrown) };
    }
    // Drops the answer to an earlier question.
    if (turn.current === own) setTried(tried);
  };
  const edit = (body: string): void => {
    setText(formatBody(body));
    setQuery({ with: "paste", event: "", call: "" });
  };
  const request = trigger === "receiver" ? requestOf(asked, shown) : null;
  // Explains at once if the user does not need to type anything.
  const isReady = way === "example" || (way === "event" && event !== "");
  useLayoutEffect(() => {
    turn.current += 1;
    setTried(UNTRIED);
    if (isReady) void explain();
  }, [way, event, name]);
  const ways =
    trigger === "receiver" ? WAYS : WAYS.filter(([one]) => one !== "paste" || trigger === "data_change");
  return html`<div class="test-tab">
    <p class="lead">A preview of each step. Relay writes, mails and calls nothing.</p>
    <div class="choices" role="group" aria-label="Test with">${ways.map(
      ([one, words]) =>
        html`<button key=${one} type="button" aria-pressed=${String(way === one)} onClick=${() => setQuery({ with: one, event: "", call: one === "paste" ? call : "" })}>${wordsOf(one, words, trigger)}</button>`,
    )}</div>
    ${call !== "" && way === "paste" && html`<${PickedRequest} place=${place} name=${name} id=${call} />`}
    ${way === "paste" && html`<${Paste} trigger=${trigger} text=${text} onText=${setText} onExplain=${() => void explain()} />`}
    ${way === "event" && event === "" && html`<${StoredEvents} place=${place} name=${name} />`}
    <div class="test-ways">
      ${
        way !== "event" &&
        trigger !== "schedule" &&
        html`<label class="test-person"><span>Person (optional)</span><input value=${person} placeholder="ada@example.com" autocomplete="off" spellcheck=${false}
        onInput=${(one: InputEvent) => setPerson((one.target as HTMLInputElement).value.trim())} /></label>`
      }
      ${
        !(way === "event" && event === "") &&
        html`<button type="button" class="primary" disabled=${isAsking || (way === "paste" && text.trim() === "")} onClick=${() => void explain()}>
        ${isAsking ? "Testing…" : shown === null ? "Run test" : "Test again"}</button>`
      }
      ${
        shown !== null &&
        shown.example !== null &&
        trigger === "receiver" &&
        html`<button type="button" onClick=${() => edit(shown.example?.body ?? "")}>Edit the example</button>`
      }
      ${request !== null && shown !== null && html`<${KeepCase} place=${place} name=${name} request=${request} />`}
      <${SendForReal} place=${place} relay=${relay} way=${way} asked=${asked} />
    </div>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    ${isAsking && html`<${Skeleton} rows=${5} />`}
    ${shown !== null && html`<${ExplainedSteps} place=${place} explanation=${shown} />`}
    ${trigger === "receiver" && html`<${RelayCases} place=${place} name=${name} version=${relay.version} onUse=${edit} />`}
  </div>`;
}

/** Returns the request of the test for a case: the generated example or the pasted body. A stored event has no text to keep. */
function requestOf(asked: Record<string, unknown>, shown: Simulation | null): CaseRequest | null {
  if (typeof asked.body !== "string") return shown?.example ?? null;
  return {
    body: asked.body,
    ...(typeof asked.contentType === "string" ? { contentType: asked.contentType } : {}),
  };
}

function wordsOf(way: Way, words: string, trigger: Relay["trigger"]): string {
  if (trigger === "schedule") return way === "example" ? "A tick now" : words;
  if (trigger === "data_change")
    return { example: "An example record", paste: "My own record", event: words }[way];
  return way === "example" ? "A signed example" : words;
}

function askedOf({
  way,
  text,
  person,
  event,
  trigger,
}: {
  way: Way;
  text: string;
  person: string;
  event: string;
  trigger: Relay["trigger"];
}): Record<string, unknown> {
  if (way === "event") return { event };
  const about = person === "" ? {} : { person };
  if (way === "example") return about;
  if (trigger === "data_change") return { ...about, record: readJson(text) };
  const { body, headers, contentType, search } = readPastedCall(text);
  const given = {
    body,
    ...(contentType === null ? {} : { contentType }),
    ...(search === "" ? {} : { search }),
  };
  return headers === null ? { ...about, ...given } : { ...given, headers };
}

/** Parses JSON. Returns any other text unchanged, and the service rejects it with a message. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function Paste({
  trigger,
  text,
  onText,
  onExplain,
}: {
  trigger: Relay["trigger"];
  text: string;
  onText: (text: string) => void;
  onExplain: () => void;
}): View {
  const isRecord = trigger === "data_change";
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || text.trim() === "") return;
    event.preventDefault();
    onExplain();
  };
  return html`<label class="field"><span>${isRecord ? "The record’s fields, as JSON" : "The request: a curl command, headers and body, or only the body"}</span>
    <textarea class="mono test-paste" rows="9" spellcheck=${false} autocomplete="off" value=${text} onKeyDown=${press}
      placeholder=${isRecord ? '{ "status": "paid" }' : 'webhook-id: msg_1\nwebhook-timestamp: …\nwebhook-signature: v1,…\n\n{ "type": "order.paid" }'}
      onInput=${(event: InputEvent) => onText((event.target as HTMLTextAreaElement).value)}></textarea>
    <span class="quiet">${isRecord ? "" : "With headers, Relay checks the signature of the sender. If you paste only the body, Relay signs it with the secret of the relay. "}Ctrl + Enter runs the test.</span></label>`;
}

/** Button that sends the test for real. Production has neither this button nor its route. */
function SendForReal({
  place,
  relay: { name, trigger },
  way,
  asked,
}: {
  place: Place;
  relay: Relay;
  way: Way;
  asked: Record<string, unknown>;
}): View {
  const { isSending, send, error } = useSend();
  const [sent, setSent] = useState<SentTest | null>(null);
  if (place.environment === "production")
    return html`<span class="quiet">Production accepts no test events, because they have real effects.</span>`;
  // A signed request is not sent again, because only its sender may do that.
  if (way === "event" || "headers" in asked) return null;
  const words = {
    receiver: "Send as a test event",
    schedule: "Run a tick now",
    data_change: "Write a test record",
  }[trigger];
  const sendOne = async (): Promise<void> => {
    setSent(null);
    const { search: _, ...body } = asked;
    const done = await send<SentTest>({
      method: "POST",
      path: apiPath(place, "relays", name, "test-event"),
      body,
      changes: [apiPath(place, "events"), apiPath(place, "relays")],
    });
    if (done !== null) setSent(done.answer);
  };
  return html`<button data-needs="edit_definitions" type="button" disabled=${isSending} title="A test event has the same effects as a real one" onClick=${() => void sendOne()}>${isSending ? "Sending…" : words}</button>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    ${
      sent !== null &&
      html`<p role="status" class="test-sent">${formatSentTest(sent)} ${
        sent.eventId === null
          ? html`<a href=${pagePath(place, "events") + writeQuery({ relay: name })}>Show events of ${name}</a>`
          : html`<a href=${pagePath(place, "events", sent.eventId)}>Open event</a>`
      }</p>`
    }`;
}
