/** Dialog that creates, changes or deletes a product, a plan or an access slug. An error appears at its field if the service names one. */
import { useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import type { CatalogUse } from "../../src/rules/relay/catalog-edit.ts";
import type { SoldThrough } from "../../src/shop/selling/catalog-item.ts";
import type { Page, RelayItem } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { catalogPaths } from "./catalog.ts";

/** Common fields of catalog items. An access slug has no version and is not sold. */
export interface Item {
  name: string;
  title: string;
  version?: number;
  soldThrough?: SoldThrough | null;
  key?: string;
  credits?: number;
  default?: boolean;
}

export type Kind = "products" | "plans" | "access";

const WORDS: Readonly<Record<Kind, string>> = { products: "product", plans: "plan", access: "access slug" };

interface Props {
  place: Place;
  kind: Kind;
  /** null for a new item. */
  item: Item | null;
  /** Relays that name the item. */
  uses: readonly CatalogUse[];
  onClose: () => void;
}

interface FormProps extends Props {
  /** Item that a relay needs. The form suggests that relay as the seller unless the item is sold already. null: no relay asked for it. */
  wanted: { name: string; relay: string | null };
  onSaved: () => void;
}

export function ItemForm({ place, kind, item: given, wanted, uses, onClose, onSaved }: FormProps): View {
  // Item when the dialog opened. If another person saved it meanwhile, the service rejects this save instead of overwriting it.
  const [item] = useState(given);
  const { send, isSending, error, problems } = useSend();
  const [warnings, setWarnings] = useState<readonly Warning[]>([]);
  const [isDeleting, setDeleting] = useState(false);
  const seller: SoldThrough | null = wanted.relay === null ? null : { kind: "relay", relay: wanted.relay };
  const sold = item?.soldThrough ?? seller;
  const [way, setWay] = useState(sold?.kind ?? "");
  const word = WORDS[kind];
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const name = item?.name ?? String(data.get("name") ?? "").trim();
    const body = readBody(kind, data, item);
    const done = `The ${word} ${name} was ${item === null ? "created" : "saved"}.`;
    const path = apiPath(place, kind, name);
    const sent = await send<{ warnings: Warning[] }>({
      method: "PUT",
      path,
      body,
      changes: catalogPaths(place),
      done,
    });
    if (sent === null) return;
    if (sent.answer.warnings.length === 0) onSaved();
    else setWarnings(sent.answer.warnings);
  };
  if (warnings.length > 0)
    return html`<${Dialog} title="Saved with warnings" onClose=${onSaved}><${WarningList} warnings=${warnings} />
      <div class="dialog-actions"><button type="button" class="primary" onClick=${onSaved}>Close</button></div><//>`;
  if (isDeleting && item !== null)
    return html`<${DeleteItem} place=${place} kind=${kind} item=${item} uses=${uses} onClose=${onClose} />`;
  return html`<${Dialog} title=${item === null ? `New ${word}` : `${word[0]?.toUpperCase()}${word.slice(1)} ${item.name}`} onClose=${onClose}>
    <form class="stack" onSubmit=${save}>
      ${
        item === null &&
        html`<label class="field"><span>${kind === "access" ? "Slug" : "Name"}</span>
          <input name="name" required autofocus autocomplete="off" spellcheck=${false} maxlength="63" defaultValue=${wanted.name} placeholder=${kind === "plans" ? "pro" : "premium"} />
          <small>Lowercase letters, digits, hyphens and underscores. Relays and grants use this name${kind === "access" && html` as <code>access:…</code>`}; you cannot change it later.</small></label>`
      }
      <label class="field"><span>Title</span><input name="title" autocomplete="off" maxlength="200" defaultValue=${item?.title ?? ""} />
        <small>The title that people see.</small><${AtField} problems=${problems} field="title" /></label>
      ${
        kind === "products" &&
        html`<label class="field"><span>What it grants</span><input name="key" autocomplete="off" spellcheck=${false} defaultValue=${item?.key ?? ""} placeholder=${item?.name ?? "as its name"} />
          <small>An entitlement: a product or plan name, or <code>access:slug</code>. Empty: its own name.</small><${AtField} problems=${problems} field="key" /></label>
        <label class="field"><span>Credits it gives</span><input name="credits" inputmode="numeric" autocomplete="off" defaultValue=${String(item?.credits ?? 0)} />
          <${AtField} problems=${problems} field="credits" /></label>`
      }
      ${
        kind === "plans" &&
        html`<label class="switch"><input type="checkbox" name="default" defaultChecked=${item?.default ?? false} />Default plan for people without a subscription</label>`
      }
      ${kind !== "access" && html`<${SoldFields} place=${place} way=${way} sold=${sold} word=${word} problems=${problems} onWay=${setWay} />`}
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <div class="dialog-actions">
        ${item !== null && html`<button type="button" class="quiet-danger dialog-first" onClick=${() => setDeleting(true)}>Delete…</button>`}
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class="primary" disabled=${isSending}>${isSending ? "Saving…" : item === null ? `Create ${word}` : "Save"}</button></div>
    </form><//>`;
}

function AtField({ problems, field }: { problems: readonly Problem[]; field: string }): View {
  const own = problems.find((problem) => problem.field === field || problem.field.startsWith(`${field}.`));
  return own === undefined
    ? null
    : html`<small class="field-problem"><${Sentence} text=${own.message} /></small>`;
}

function readBody(kind: Kind, data: FormData, item: Item | null): object {
  const text = (name: string): string => String(data.get(name) ?? "").trim();
  const title = text("title") === "" ? {} : { title: text("title") };
  if (kind === "access") return title;
  const way = text("way");
  const soldThrough =
    way === "relay"
      ? { kind: way, relay: text("relay"), ...(text("url") === "" ? {} : { url: text("url") }) }
      : way === "payment_link"
        ? { kind: way, url: text("url") }
        : null;
  const version = item?.version === undefined ? {} : { version: item.version };
  const shared = { ...title, ...version, soldThrough };
  if (kind === "plans") return { ...shared, default: data.get("default") !== null };
  const credits = text("credits");
  return {
    ...shared,
    ...(text("key") === "" ? {} : { key: text("key") }),
    // The service rejects a value that is not a number and explains the format.
    credits: /^-?\d{1,15}$/.test(credits) ? Number(credits) : credits,
  };
}

function SoldFields({
  place,
  way,
  sold,
  word,
  problems,
  onWay,
}: {
  place: Place;
  way: string;
  sold: SoldThrough | null;
  word: string;
  problems: readonly Problem[];
  onWay: (way: SoldThrough["kind"] | "") => void;
}): View {
  const relays = useLoad<Page<RelayItem>>(`${apiPath(place, "relays")}?limit=200`);
  const own = sold?.kind === "relay" ? sold.relay : "";
  const names = (relays.data?.items ?? []).map(({ name }) => name).sort();
  const listed = own === "" || names.includes(own) ? names : [own, ...names];
  return html`<label class="field"><span>Sold through</span>
      <select name="way" value=${way} onChange=${(event: Event) => onWay((event.target as HTMLSelectElement).value as SoldThrough["kind"] | "")}>
        <option value="" selected=${way === ""}>Not sold</option>
        <option value="relay" selected=${way === "relay"}>A relay that receives the payment webhook</option>
        <option value="payment_link" selected=${way === "payment_link"}>A payment link of your processor</option></select>
      <${AtField} problems=${problems} field="soldThrough" /></label>
    ${
      way === "relay" &&
      html`<label class="field"><span>Relay</span><select name="relay" required>
        ${listed.map((name) => html`<option key=${name} value=${name} selected=${name === own}>${name}</option>`)}</select>
        <small>${listed.length === 0 ? html`There is no relay yet: <a href=${pagePath(place, "relays", "new")}>create one</a> with the action <code>${word === "plan" ? "grant_plan" : "fulfil_product"}</code> first.` : html`Only this relay can ${word === "plan" ? html`<code>grant_plan</code>` : html`<code>fulfil_product</code>`} it.`}</small></label>
        <label class="field"><span>Where buyers pay</span><input name="url" type="url" autocomplete="off" placeholder="https://" defaultValue=${sold?.kind === "relay" ? (sold.url ?? "") : ""} />
        <small>Optional: the checkout or payment page of your provider. Your app gets this URL when it asks to sell the item.</small></label>`
    }
    ${
      way === "payment_link" &&
      html`<label class="field"><span>Payment link</span><input name="url" type="url" required autocomplete="off" placeholder="https://" defaultValue=${sold?.kind === "payment_link" ? sold.url : ""} />
        <small>The client library opens it for buyers.</small></label>`
    }`;
}

function DeleteItem({ place, kind, item, uses, onClose }: Props & { item: Item }): View {
  const { send, isSending, error, code } = useSend();
  const word = WORDS[kind];
  const name = kind === "access" ? `access:${item.name}` : item.name;
  const own = uses.filter((use) => use.name === name);
  const remove = async (force: boolean): Promise<void> => {
    const query = force ? "?force=true" : item.version === undefined ? "" : `?version=${item.version}`;
    const path = apiPath(place, kind, item.name) + query;
    const done = `The ${word} ${item.name} is deleted.`;
    if ((await send({ method: "DELETE", path, changes: catalogPaths(place), done })) !== null) onClose();
  };
  const mayForce = kind === "access" && code === "in_use";
  return html`<${Dialog} title="Delete the ${word} ${item.name}?" onClose=${onClose}>
    <p>People keep what they already have.${
      own.length > 0 &&
      html` <b>${own.map(({ relay }) => relay).join(", ")}</b> ${own.length === 1 ? "names" : "name"} it: their events fail until it exists again.`
    }</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void remove(mayForce)}>
        ${isSending ? "Deleting…" : mayForce ? "Delete and keep the grants" : `Delete ${word}`}</button></div><//>`;
}
