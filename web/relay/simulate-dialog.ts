/**
 * Button and dialog that play a life of a selling kit. The service sends one step at a time as signed requests, and the dialog shows what each
 * relay did and what changed for the person. After a lost answer the same step is sent again, which changes nothing.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { LifeView } from "../../src/insight/simulate/life.ts";
import type { Effect, Holdings } from "../../src/insight/simulate/life-effect.ts";
import type { KitView } from "../../src/rules/senders/kit-view.ts";
import type { Relay } from "../base/answer.ts";
import { call, sentenceOf, writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { EventMark } from "../component/state-mark.ts";
import { useKits } from "./kit-choice.ts";
import { formatActionType } from "./relay-words.ts";

const LOOK_EVERY_MS = 300;
/** The looks at a step whose events still run, which is about half a minute. */
const MAX_LOOKS = 100;

interface Props {
  place: Place;
  relay: Relay;
}

/** Shows the button for the source of a kit. Production plays no life. */
export function SimulateButton({ place, relay }: Props): View {
  if (place.environment === "production" || relay.followers === undefined) return null;
  return html`<${KitButton} place=${place} relay=${relay} />`;
}

function KitButton({ place, relay: { name } }: Props): View {
  const kit = useKits().find(({ sender }) => sender === name);
  const [isOpen, setOpen] = useState(false);
  if (kit === undefined) return null;
  return html`<button data-needs="edit_definitions" type="button" onClick=${() => setOpen(true)}><${Icon} name="play" size=${14} />Simulate…</button>
    ${isOpen && html`<${SimulateDialog} place=${place} sender=${name} title=${kit.title} onClose=${() => setOpen(false)} />`}`;
}

/** A step whose events are final or wait. */
interface PlayedStep {
  effect: Effect;
  before: Holdings;
}

interface Playing {
  /** The life, as the service described it before its first step. */
  begun: LifeView | null;
  steps: readonly PlayedStep[];
  isPlaying: boolean;
  error: string | null;
}

const NOTHING: Playing = { begun: null, steps: [], isPlaying: false, error: null };

function SimulateDialog({
  place,
  sender,
  title,
  onClose,
}: {
  place: Place;
  sender: string;
  title: string;
  onClose: () => void;
}): View {
  const path = `/api/kits/${encodeURIComponent(sender)}`;
  const { data, error: unread, reload } = useLoad<{ kit: KitView }>(path);
  const [chosen, setChosen] = useState<string | null>(null);
  const [person, setPerson] = useState("");
  const [{ begun, steps, isPlaying, error }, setPlaying] = useState(NOTHING);
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const lives = data?.kit.lives ?? [];
  const life = chosen ?? lives[0]?.name ?? "";
  const isOver = begun !== null && steps.length === begun.steps.length;
  const isPaused = begun !== null && !isOver && !isPlaying;

  /** Plays the rest of a life, or a new one. */
  const play = async (from: LifeView | null, done: readonly PlayedStep[]): Promise<void> => {
    let now: Playing = { begun: from, steps: done, isPlaying: true, error: null };
    const show = (part: Partial<Playing>): void => {
      now = { ...now, ...part };
      if (!isGone.current) setPlaying(now);
    };
    show({});
    try {
      const first = from ?? (await send(place, { kit: sender, life, ...(person === "" ? {} : { person }) }));
      show({ begun: first });
      for (let at = done.length; at < first.steps.length && !isGone.current; at++) {
        const before = (now.steps.at(-1)?.effect ?? first.effect).holdings;
        const { life: name, person: address, run } = first;
        const sent = await send(place, { kit: sender, life: name, person: address, run, step: at + 1 });
        show({ steps: [...now.steps, { before, effect: await awaitEffect(place, sent) }] });
      }
    } catch (thrown) {
      show({ error: sentenceOf(thrown) });
    }
    show({ isPlaying: false });
    for (const changed of ["events", "relays", "persons"]) invalidate(apiPath(place, changed));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    void (isPaused ? play(begun, steps) : play(null, []));
  };
  const words = isPaused ? "Continue" : begun === null ? "Play" : "Play again";
  return html`<${Dialog} title="Simulate ${title}" onClose=${onClose} wide>
    <p>Relay sends the requests of a customer’s life to this relay, signed as ${title} signs them. Every effect is real: mails are sent and URLs are called.</p>
    ${
      data === undefined
        ? html`<${LoadingState} error=${unread} rows=${2} onRetry=${reload} />`
        : html`<form class="stack" onSubmit=${submit}>
      <div class="life-choice">
        <label class="field"><span>Life</span>
          <select value=${life} disabled=${isPlaying} autofocus onChange=${(event: Event) => {
            setChosen((event.target as HTMLSelectElement).value);
            setPlaying(NOTHING);
          }}>${lives.map(({ name, title: words }) => html`<option key=${name} value=${name} selected=${name === life}>${words}</option>`)}</select></label>
        <label class="field"><span>Person (optional)</span>
          <input value=${person} disabled=${isPlaying} placeholder="a new person" type="email" autocomplete="off" spellcheck=${false} maxlength="254"
            onInput=${(event: InputEvent) => {
              setPerson((event.target as HTMLInputElement).value.trim());
              setPlaying(NOTHING);
            }} /></label>
      </div>
      ${begun !== null && html`<${PlayedLife} place=${place} begun=${begun} steps=${steps} isPlaying=${isPlaying} />`}
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <div class="dialog-actions"><button type="button" onClick=${onClose}>Close</button>
        <button class="primary" disabled=${isPlaying}>${isPlaying ? "Playing…" : words}</button></div>
    </form>`
    }<//>`;
}

async function send(place: Place, body: object): Promise<LifeView> {
  const path = apiPath(place, "simulations");
  return (await call<{ simulation: LifeView }>("POST", path, body)).simulation;
}

/** Waits until the events of the step are final or wait for a retry. */
async function awaitEffect(place: Place, { person, effect: first }: LifeView): Promise<Effect> {
  const query = writeQuery({ person, events: first.events.map(({ id }) => id).join(",") });
  let effect = first;
  for (let tries = 0; !effect.settled && tries < MAX_LOOKS; tries++) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    effect = (await call<{ effect: Effect }>("GET", apiPath(place, "simulations", "effect") + query)).effect;
  }
  return effect;
}

function PlayedLife({
  place,
  begun,
  steps,
  isPlaying,
}: {
  place: Place;
  begun: LifeView;
  steps: readonly PlayedStep[];
  isPlaying: boolean;
}): View {
  const id = (steps.at(-1)?.effect ?? begun.effect).holdings.person;
  const shown = isPlaying ? begun.steps.slice(0, steps.length + 1) : begun.steps.slice(0, steps.length);
  return html`<p role="status">${steps.length} of ${begun.steps.length} ${begun.steps.length === 1 ? "step" : "steps"} played for ${
    id === null ? begun.person : html`<a href=${pagePath(place, "people", id)}>${begun.person}</a>`
  }.</p>
    ${begun.missing.length > 0 && html`<${Notice} kind="warn">These relays of the kit are not saved here, so their part does nothing: ${begun.missing.join(", ")}.<//>`}
    <ol class="life-steps">${shown.map(({ day, does }, at) => {
      const step = steps[at];
      return html`<li key=${at}><h3><span class="quiet">Day ${day}</span> ${does}</h3>
        ${step === undefined ? html`<p class="quiet">Waiting for the events…</p>` : html`<${StepEffect} place=${place} step=${step} />`}</li>`;
    })}</ol>`;
}

function StepEffect({ place, step: { before, effect } }: { place: Place; step: PlayedStep }): View {
  const changes = listChanges(before, effect.holdings);
  return html`${
    changes.length === 0
      ? html`<p class="quiet">Nothing changed for the person.</p>`
      : html`<dl class="life-changes">${changes.map(
          ([name, was, is]) => html`<div key=${name}><dt>${name}</dt><dd>${was} → <b>${is}</b></dd></div>`,
        )}</dl>`
  }
    <ul class="life-events">${effect.events.map((event) => {
      const did = event.results.map(formatResult).join(", ");
      const failed = event.results.find(({ outcome }) => outcome === "failed")?.message;
      const why = event.state === "done" ? null : (event.waits ?? failed ?? event.reason);
      return html`<li key=${event.id}><${EventMark} event=${event} /> <a href=${pagePath(place, "events", event.id)}>${event.relay}</a>
        <span class="quiet">${did}</span>${why !== null && html`<p class="quiet"><${Sentence} text=${why} /></p>`}</li>`;
    })}</ul>
    ${!effect.settled && html`<p class="quiet">An event still runs. Its page shows the result later.</p>`}`;
}

function formatResult({ type, outcome }: Effect["events"][number]["results"][number]): string {
  return outcome === "done" ? formatActionType(type) : `${formatActionType(type)} (${outcome})`;
}

type Change = readonly [name: string, was: string, is: string];

function listChanges(was: Holdings, is: Holdings): Change[] {
  const rows: Change[] = [
    ["Access", formatNames(was.access), formatNames(is.access)],
    ["Plan", was.plan ?? "none", is.plan ?? "none"],
    ["Credits", formatNumber(was.credits), formatNumber(is.credits)],
    ["Receipts", formatNames(was.receipts), formatNames(is.receipts)],
  ];
  return rows.filter(([, one, other]) => one !== other);
}

function formatNames(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.toSorted().join(", ");
}
