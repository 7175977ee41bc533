/**
 * Page "What Relay found": each guess from a request with its value and reason. The user keeps or drops each one, can try a secret, and builds the
 * relay. Nothing is saved.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RequestGuess } from "../../../src/insight/simulate/guess-request.ts";
import type { Relay } from "../../base/answer.ts";
import { call, sentenceOf } from "../../base/api.ts";
import { writeExact } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { apiPath, type Place } from "../../base/place.ts";
import { useLoad } from "../../base/use-load.ts";
import { Icon } from "../../component/icon.ts";
import { LoadingState, Notice } from "../../component/notice.ts";
import { SafeText } from "../../component/safe-text.ts";
import { Sentence } from "../../component/sentence.ts";
import { nodeAt, readTree } from "../../editor/json-tree.ts";
import { setValue } from "../../editor/text-edit.ts";
import css from "../builder.css" with { type: "text" };
import { dropCondition, listMapped, unmap } from "../payload-use.ts";
import { inputOfSeen, type SeenRequest } from "../seen-request.ts";
import { useStyle } from "../style.ts";

const PAUSE_MS = 400;
const VALUE_CHARS = 200;

export function Found({
  place,
  request,
  secret,
  onSecret,
  onBuild,
  onBack,
}: {
  place: Place;
  request: SeenRequest;
  secret: string;
  onSecret: (secret: string) => void;
  /** Receives the text of the definition. */
  onBuild: (text: string) => void;
  onBack: () => void;
}): View {
  useStyle(css);
  const source = useSource(place, request.relay);
  const [guess, setGuess] = useState<RequestGuess | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        const path = apiPath(place, "relays", "guess");
        const given = secret.trim() === "" ? {} : { secret };
        // A guess tries the secret at any time.
        const asked = { ...inputOfSeen({ ...request, receivedAt: null }), ...given };
        const answer = await call<{ guess: RequestGuess }>("POST", path, asked, stop.signal);
        if (stop.signal.aborted) return;
        setGuess(answer.guess);
        setError(null);
      } catch (thrown) {
        if (!stop.signal.aborted) setError(sentenceOf(thrown));
      }
    };
    const timer = setTimeout(() => void ask(), secret === "" ? 0 : PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [request, secret, turn]);
  if (guess === null || source === undefined)
    return html`<div class="stack"><${LoadingState} error=${error} rows=${6} onRetry=${() => setTurn(turn + 1)} />
      ${error !== null && html`<div class="form-actions"><button type="button" onClick=${onBack}>Choose another request</button></div>`}</div>`;
  return html`<${Guesses} source=${source} guess=${guess} error=${error} secret=${secret} onSecret=${onSecret} onBuild=${onBuild} onBack=${onBack} />`;
}

/** Returns the receiver that verified the request of a relay. null: the new relay cannot follow it, undefined: it is not known yet. */
function useSource(place: Place, name: string | undefined): string | null | undefined {
  const { data, error } = useLoad<{ relay: Relay }>(
    name === undefined ? null : apiPath(place, "relays", name),
  );
  if (name === undefined || error !== null) return null;
  if (data === undefined) return undefined;
  const { relay } = data;
  if (relay.follows !== undefined) return relay.follows;
  return relay.trigger === "receiver" && relay.secret.kind !== "processor" ? relay.name : null;
}

interface Choice {
  key: string;
  label: string;
  path: string;
  value: string;
  why: string;
  /** Removes the guess from the definition; null: it is in no part of the definition. */
  drop: ((text: string) => string) | null;
}

function Guesses({
  source,
  guess,
  error,
  secret,
  onSecret,
  onBuild,
  onBack,
}: {
  /** Receiver that verified the request and that the new relay can follow. */
  source: string | null;
  guess: RequestGuess;
  error: string | null;
  secret: string;
  onSecret: (secret: string) => void;
  onBuild: (text: string) => void;
  onBack: () => void;
}): View {
  const { sender, verify, definition } = guess;
  const start = useMemo(() => writeExact(definition, 2), [definition]);
  const [typedName, setTypedName] = useState<string | null>(null);
  const [isFollower, setFollower] = useState(source !== null);
  const [dropped, setDropped] = useState<ReadonlySet<string>>(new Set());
  const name = typedName ?? nodeAt(readTree(start), ["name"])?.value ?? "";
  const choices = choicesOf(guess, start);
  const toggle = (key: string): void => {
    const next = new Set(dropped);
    if (!next.delete(key)) next.add(key);
    setDropped(next);
  };
  const build = (event: Event): void => {
    event.preventDefault();
    let text = setValue(start, ["name"], name);
    if (isFollower) text = setValue(text, ["trigger", "verify"], { scheme: "receiver", receiver: source });
    for (const { key, drop } of choices) if (dropped.has(key) && drop !== null) text = drop(text);
    onBuild(text);
  };
  return html`<form class="stack narrow-page found" onSubmit=${build}>
    <p class="lead">Relay read the request. Keep what is right. Nothing is saved until you create the relay.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <section class="card"><h2>Sender</h2>
      <p><b>${sender === null ? "Unknown sender" : sender.title}</b></p>
      <p class="quiet"><${Sentence} text=${sender === null ? "No known sender sends such a request." : sender.why} /></p></section>
    <section class="card"><h2>Signature</h2>
      ${
        source !== null &&
        html`<label class="switch"><input type="checkbox" checked=${isFollower} onChange=${() => setFollower(!isFollower)} />
          <span>Follow <code>${source}</code>, which verified this request. The relay then needs no receiver URL and no secret.</span></label>`
      }
      ${
        !isFollower &&
        html`<p><${Sentence} text=${verify.why} /> <${Verdict} verified=${verify.verified} /></p>
      <details><summary>Recipe</summary><pre class="preview">${writeExact(verify.value, 2)}</pre></details>
      <label class="field"><span>Secret or public key of the sender (optional)</span>
        <textarea class="mono" rows="1" spellcheck=${false} autocomplete="off" value=${secret} onInput=${(event: InputEvent) => onSecret((event.target as HTMLTextAreaElement).value)}></textarea>
        <small>Relay tries it with this request. Relay stores it when you create the relay.</small></label>`
      }</section>
    <section class="card"><h2>Values</h2>
      ${guess.eventId === null && html`<p class="quiet">Relay found no deduplication ID. Without one, only an equal body within one UTC day is a duplicate. You can choose a value in the builder.</p>`}
      ${choices.length === 0 && html`<p class="quiet">Relay found no value with a meaning. You can map values in the builder.</p>`}
      <ul class="found-values">${choices.map(
        ({ key, label, path, value, why, drop }) => html`<li key=${key}><label class="found-value">
          <input type="checkbox" checked=${!dropped.has(key)} disabled=${drop === null} onChange=${() => toggle(key)} />
          <span><b>${label}</b> <code><${SafeText} text=${path} limit=${VALUE_CHARS} breaks /></code> <span class="found-text"><${SafeText} text=${value} limit=${VALUE_CHARS} /></span>
            <small class="quiet"><${Sentence} text=${why} /></small></span></label></li>`,
      )}</ul></section>
    <label class="field"><span>Name of the relay</span>
      <input class="mono" value=${name} maxlength="63" spellcheck=${false} autocomplete="off" onInput=${(event: InputEvent) => setTypedName((event.target as HTMLInputElement).value)} /></label>
    <div class="form-actions"><button class="primary">Build the relay</button>
      <button type="button" onClick=${onBack}>Choose another request</button></div>
  </form>`;
}

/** Says whether the secret verifies the request. */
function Verdict({ verified }: { verified: boolean | null }): View {
  if (verified === null) return null;
  return html`<span role="status" class=${verified ? "fact-good" : "fact-bad"}><${Icon} name=${verified ? "check" : "cross"} size=${13} /> ${
    verified ? "The secret verifies this request." : "The secret does not verify this request."
  }</span>`;
}

/** Lists the guesses, each with the edit that removes it from the definition. */
function choicesOf({ eventType, eventId, person, customer }: RequestGuess, start: string): Choice[] {
  const root = readTree(start);
  const mapped = listMapped(root);
  const choices: Choice[] = [];
  const add = (
    key: string,
    label: string,
    guess: { path: string; value: string; why: string } | null,
  ): void => {
    if (guess === null) return;
    const { path, value, why } = guess;
    const names = mapped.get(path) ?? [];
    const drop = names.length === 0 ? null : (text: string) => names.reduce(unmap, text);
    choices.push({ key, label, path, value, why, drop });
  };
  add("type", "Event type", eventType);
  for (const { name, value } of nodeAt(root, ["trigger", "when"])?.members ?? [])
    choices.push({
      key: `when ${name}`,
      label: "Only requests with",
      path: name,
      value: value?.value ?? "",
      why: "The relay ignores requests with another value.",
      drop: (text) => dropCondition(text, name),
    });
  if (eventId !== null)
    add("id", "Deduplication ID", { ...eventId, path: eventId.path ?? `header ${eventId.header ?? ""}` });
  add("person", person?.name === "person_id" ? "Person’s ID" : "Person’s email", person);
  add("customer", "Provider’s customer ID", customer);
  return choices;
}
