/**
 * Selling kits as the first step of a new relay: the seller names a product and plans, sees every relay and the catalog, and saves them together.
 * After the save, the page shows the new secret and the steps at the provider.
 */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { SavedKit } from "../../src/interfaces/api/kit.ts";
import type { KitLine, KitView } from "../../src/rules/senders/kit-view.ts";
import type { Page, Relay } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { DocsLink } from "../component/docs-link.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { needsIssuedSecret, PasteSecret, useIssuer } from "./paste-secret.ts";
import { secretsOf, TunnelHint } from "./relay-created.ts";

/** Returns the kits in alphabetical order. */
export function useKits(): readonly KitLine[] {
  return useLoad<Page<KitLine>>("/api/kits?limit=200").data?.items ?? [];
}

type Names = Readonly<Record<"product" | "plan" | "plan2", string>>;

const NAMES: Names = { product: "course", plan: "basic", plan2: "pro" };
const FIELDS: readonly { field: keyof Names; label: string }[] = [
  { field: "product", label: "Name of the product" },
  { field: "plan", label: "Name of the first plan" },
  { field: "plan2", label: "Name of the second plan" },
];
const TYPING_PAUSE_MS = 300;

/** A saved kit, with its relays and its steps under the seller's names. */
export interface MadeKit {
  kit: KitView;
  saved: SavedKit;
}

interface Props {
  place: Place;
  sender: string;
  onMade: (made: MadeKit) => void;
}

export function KitPreview({ place, sender, onMade }: Props): View {
  const [typed, setTyped] = useState(NAMES);
  const [names, setNames] = useState(NAMES);
  const [shown, setShown] = useState<KitView | null>(null);
  const path = `/api/kits/${encodeURIComponent(sender)}${writeQuery(names)}`;
  const { data, error, reload } = useLoad<{ kit: KitView }>(path);
  const { send, isSending, error: refusal } = useSend();
  useEffect(() => {
    const timer = setTimeout(() => setNames(typed), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  // The last valid kit stays while the next one loads, and while a name is invalid.
  if (data !== undefined && data.kit !== shown) setShown(data.kit);
  const kit = data?.kit ?? shown;
  if (kit === null)
    return html`<section class="card template-preview"><${LoadingState} error=${error} onRetry=${reload} /></section>`;
  const { title, cannot, sellsPlans, relays, catalog, steps, docs } = kit;
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const sent = await send<SavedKit>({
      method: "POST",
      path: apiPath(place, "kits", sender),
      body: names,
      changes: [apiPath(place)],
    });
    if (sent !== null) onMade({ kit, saved: sent.answer });
  };
  return html`<section class="card template-preview" aria-label="Preview of ${title}">
    <div class="block-head"><h2>Sell with ${title}</h2></div>
    <p>This kit has ${relays.length} relays for one endpoint at ${title}, with their catalog. Read <${DocsLink} to=${docs}>what each step of a sale does<//>.</p>
    ${cannot.length > 0 && html`<h3>What ${title} cannot report</h3><ul class="sender-pitfalls">${cannot.map((one) => html`<li key=${one}><${Sentence} text=${one} /></li>`)}</ul>`}
    <form class="stack" onSubmit=${save}>
      <div class="kit-names">${FIELDS.filter(({ field }) => sellsPlans || field === "product").map(
        ({ field, label }) =>
          html`<label key=${field} class="field"><span>${label}</span>
            <input class="mono" value=${typed[field]} maxlength="40" spellcheck=${false} autocomplete="off"
              onInput=${(event: InputEvent) => setTyped({ ...typed, [field]: (event.target as HTMLInputElement).value })} /></label>`,
      )}</div>
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <h3>Relays</h3>
      <ul class="kit-relays">${relays.map(
        ({ does, definition }) =>
          html`<li key=${definition.name}><details><summary><b>${definition.name}</b> <span class="quiet">${does}</span></summary>
            <pre class="diff version-text" tabindex="0" aria-label="Definition of ${definition.name}">${writeExact(definition, 2)}</pre></details></li>`,
      )}</ul>
      <details><summary><b>Catalog</b> <span class="quiet">The items that the relays name. Items that exist stay.</span></summary>
        <pre class="diff version-text" tabindex="0" aria-label="Catalog">${writeExact(catalog, 2)}</pre></details>
      <h3>What to do at ${title}</h3>
      <ol class="steps quiet">${steps.map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol>
      ${refusal !== null && html`<${Notice} kind="bad"><${Sentence} text=${refusal} /><//>`}
      ${
        place.environment === "production"
          ? html`<${Notice} kind="info">Save a kit in development, try it there, and promote it to production. <a href=${pagePath({ ...place, environment: "development" }, "relays", "new") + writeQuery({ sell: sender })}>Open development</a><//>`
          : html`<div class="form-actions"><button class="primary" disabled=${isSending || data === undefined || names !== typed}>
            ${isSending ? "Saving…" : `Save ${relays.length} relays and the catalog`}</button></div>`
      }
    </form>
  </section>`;
}

/** Page after the save of a kit: the receiver URL and the secret of its source, and the steps at the provider. */
export function KitCreated({ place, made: { kit, saved } }: { place: Place; made: MadeKit }): View {
  useLayoutEffect(() => scrollTo(0, 0), []);
  const { source, relays, changes, file } = saved;
  const loaded = useLoad<{ relay: Relay }>(apiPath(place, "relays", source)).data?.relay;
  const issuer = useIssuer(place, saved.secrets.length === 0 ? null : source);
  const secrets = saved.secrets.flatMap((made) => secretsOf(made, issuer));
  const { title, steps } = kit;
  const asksSecret = loaded !== undefined && needsIssuedSecret(loaded);
  const warnings = saved.warnings.filter(({ code }) => !asksSecret || code !== "secret_missing");
  return html`<${PageHead} title="Sell with ${title}" back="Relays" backTo=${pagePath(place, "relays")} />
    <div class="stack narrow-page">
      <${Notice} kind="good">${changes === 0 ? "Everything exists already, and nothing changed." : `Saved ${relays.length} relays and their catalog.`}${file !== undefined && saved.warnings.every(({ code }) => code !== "file_not_written") && html` Written to <code>${file}</code> and to one file for each relay.`}<//>
      <${WarningList} warnings=${warnings} />
      ${
        loaded?.receiverUrl !== undefined &&
        html`<section class="card"><h2>Receiver URL</h2>
          <p class="quiet">Register exactly this URL at ${title}. It serves all ${relays.length} relays.</p>
          <div class="copy-row"><code>${loaded.receiverUrl}</code>
            <${CopyButton} text=${loaded.receiverUrl} label="Copy receiver URL" /></div>
          <${TunnelHint} place=${place} /></section>`
      }
      ${asksSecret && html`<${PasteSecret} place=${place} relay=${loaded} />`}
      ${secrets.length > 0 && html`<section class="card"><${SecretOnce} secrets=${secrets} /></section>`}
      <section class="card"><h2>What to do at ${title}</h2><ol class="steps quiet">
        ${steps.map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol></section>
      <p class="quiet">The page of ${source} has a checklist. It marks each step when it happened, up to the first test purchase and its refund.</p>
      <div class="form-actions"><a class="button primary" href=${pagePath(place, "relays", source)} data-confirmed>
        ${secrets.length > 0 ? `I stored the secret: open ${source}` : `Open ${source}`}</a></div>
    </div>`;
}
