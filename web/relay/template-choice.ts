/** First step of a new relay: a searchable list of templates and known senders with a preview. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SenderLine } from "../../src/rules/senders/sender-view.ts";
import type { Page } from "../base/answer.ts";
import { writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import type { SeenRequest } from "../builder/seen-request.ts";
import { REQUEST_STARTS, RequestStart, type StartWay } from "../builder/start/request-start.ts";
import { SearchBox } from "../component/search-box.ts";
import { Sentence } from "../component/sentence.ts";
import { KitPreview, type MadeKit, useKits } from "./kit-choice.ts";
import { EXAMPLES } from "./relay-example.ts";
import { formatAction } from "./relay-words.ts";
import { SenderPreview, useSenders } from "./sender-choice.ts";

interface Template {
  name: string;
  title: string;
  summary: string;
  definition: Readonly<Record<string, unknown>>;
  /** Remaining steps after the user takes the template. */
  steps: readonly string[];
}

const HERE: readonly Template[] = EXAMPLES.map(({ title, hint, definition }) => ({
  name: String(definition.name),
  title,
  summary: hint,
  definition,
  steps: [],
}));

const EMPTY = '{\n  "name": "",\n  "trigger": {},\n  "actions": []\n}';

/** Returns the templates of the dashboard and of the service. */
export function useTemplates(): readonly Template[] {
  const offered = useLoad<Page<Template>>("/api/relay-templates").data?.items ?? [];
  return [...HERE, ...offered];
}

export function TemplateChoice({
  place,
  templates,
  chosen,
  sender,
  kit,
  start,
  query,
  onChoose,
  onChooseSender,
  onChooseKit,
  onChooseStart,
  onMadeKit,
  onTake,
  onRequest,
}: {
  place: Place;
  templates: readonly Template[];
  chosen: Template | undefined;
  /** Name of the sender in the preview; "" for a template. */
  sender: string;
  /** Provider of the kit in the preview; "" for another start. */
  kit: string;
  /** Start from a request that is in view; null for another start. */
  start: StartWay | null;
  query: URLSearchParams;
  onChoose: (name: string) => void;
  onChooseSender: (name: string) => void;
  onChooseKit: (sender: string) => void;
  onChooseStart: (way: StartWay) => void;
  onMadeKit: (made: MadeKit) => void;
  onRequest: (request: SeenRequest) => void;
  onTake: (text: string) => void;
}): View {
  const senders = useSenders();
  const kits = useKits();
  const [wanted, setWanted] = useState("");
  const isWanted = ({ title, summary }: Pick<SenderLine, "title" | "summary">): boolean =>
    `${title} ${summary}`.toLowerCase().includes(wanted.trim().toLowerCase());
  const shown = sender === "" && kit === "" && start === null ? (chosen ?? templates[0]) : undefined;
  const starts = REQUEST_STARTS.filter(isWanted);
  const offered = templates.filter(isWanted);
  const known = senders.filter(isWanted);
  const selling = kits.filter(({ title }) => isWanted({ title: `Sell with ${title}`, summary: "" }));
  const host = useRef<HTMLDivElement>(null);
  const shownKey = `${start} ${kit} ${sender} ${shown?.name}`;
  const before = useRef(shownKey);
  // In a narrow window the choice is below the list, where it would appear unseen.
  useLayoutEffect(() => {
    if (before.current === shownKey) return;
    before.current = shownKey;
    const preview = host.current?.querySelector(".template-preview");
    if (preview != null && preview.getBoundingClientRect().top > innerHeight / 2) preview.scrollIntoView();
  }, [shownKey]);
  return html`<div class="templates" ref=${host}>
    <div class="template-find">
      <${SearchBox} value="" label="Search senders and templates" onValue=${setWanted} />
      <div class="template-list" role="group" aria-label="Start from">
        ${starts.map(
          ({ way, title, summary }) =>
            html`<button key=${`start ${way}`} type="button" class="template" aria-pressed=${start === way} onClick=${() => onChooseStart(way)}>
            <b>${title}</b><span>${summary}</span></button>`,
        )}
        ${selling.map(
          ({ sender: provider, title, sellsPlans }) =>
            html`<button key=${`kit ${provider}`} type="button" class="template" aria-pressed=${kit === provider} onClick=${() => onChooseKit(provider)}>
            <b>Sell with ${title}</b><span>All relays for ${sellsPlans ? "purchases, subscriptions and refunds" : "purchases and refunds"}, with their catalog.</span></button>`,
        )}
        ${offered.map(
          ({ name, title, summary }) =>
            html`<button key=${name} type="button" class="template" aria-pressed=${shown?.name === name} onClick=${() => onChoose(name)}>
            <b>${title}</b><span>${summary}</span></button>`,
        )}
        <button type="button" class="template" onClick=${() => onTake(EMPTY)}><b>An empty relay</b><span>You choose its trigger and its actions.</span></button>
        ${known.length > 0 && html`<h2 class="template-kind">Senders</h2>`}
        ${known.map(
          ({ name, title, summary }) =>
            html`<button key=${`sender ${name}`} type="button" class="template" aria-pressed=${sender === name} onClick=${() => onChooseSender(name)}>
            <b>${title}</b><span>${summary}</span></button>`,
        )}
        ${known.length === 0 && senders.length > 0 && html`<p class="quiet">No sender has this name. Start from an empty definition or from a similar sender.</p>`}
      </div>
    </div>
    ${start !== null ? html`<${RequestStart} key=${start} place=${place} way=${start} query=${query} onRequest=${onRequest} />` : kit !== "" ? html`<${KitPreview} key=${kit} place=${place} sender=${kit} onMade=${onMadeKit} />` : sender !== "" ? html`<${SenderPreview} key=${sender} name=${sender} onTake=${onTake} />` : shown !== undefined && html`<${Preview} template=${shown} onTake=${onTake} />`}
  </div>`;
}

function Preview({
  template: { title, summary, definition, steps },
  onTake,
}: {
  template: Template;
  onTake: (text: string) => void;
}): View {
  const text = writeExact(definition, 2);
  const actions = Array.isArray(definition.actions) ? definition.actions : [];
  return html`<section class="card template-preview" aria-label="Preview of ${title}">
    <div class="block-head"><h2>${title}</h2>
      <button type="button" class="primary" onClick=${() => onTake(text)}>Use this template</button></div>
    <p>${summary}</p>
    <ol class="steps">${actions.map((action, at) => html`<li key=${at}>${formatAction(action)}</li>`)}</ol>
    <pre class="diff version-text" tabindex="0" aria-label="Definition">${text}</pre>
    ${steps.length > 0 && html`<h3>What you must change</h3><ol class="steps quiet">${steps.map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol>`}
  </section>`;
}
