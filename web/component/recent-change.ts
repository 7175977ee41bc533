/** The change that was made shortly before a problem began, and the link that undoes it or opens the page where the user can change it back. */
import type { RecentChange } from "../../src/rules/relay/recent-change.ts";
import type { Page } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { NAMES_QUERY } from "../editor/use-known.ts";
import type { WayBack } from "./create-item.ts";
import { Sentence } from "./sentence.ts";

/** Row of an explanation. */
export function ChangeRow({ change }: { change: RecentChange }): View {
  return html`<div><dt>Just changed</dt><dd><${Sentence} text=${change.message} /></dd></div>`;
}

interface Props {
  place: Place;
  change: RecentChange;
  /** Relay with the problem; null if the problem concerns no relay. */
  relay: string | null;
  /** Page to continue on. */
  back: WayBack;
}

export function UndoChange({ place, change, relay, back }: Props): View {
  const isBack = useExists(place, change);
  const [href, words] = wayOf({
    place,
    change: isBack ? { ...change, deleted: false } : change,
    relay,
    back,
  });
  return html`<a data-needs=${OF_SETTINGS.has(change.kind) ? "edit_settings" : "edit_definitions"} class="button primary" href=${href}>${words}</a>`;
}

const OF_SETTINGS: ReadonlySet<RecentChange["kind"]> = new Set([
  "secret",
  "mail",
  "sender_domain",
  "processor",
]);

const LISTS: Partial<Record<RecentChange["kind"], string>> = {
  collection: "collections",
  product: "products",
  plan: "plans",
  access: "access",
};

/** Reports whether a deleted item exists again. Only a deletion loads the list of names. */
function useExists(place: Place, { kind, name, deleted }: RecentChange): boolean {
  const list = deleted ? LISTS[kind] : undefined;
  const path = list === undefined ? null : apiPath(place, list) + NAMES_QUERY;
  const items = useLoad<Page<{ name?: string; slug?: string }>>(path).data?.items ?? [];
  return items.some((item) => (item.name ?? item.slug) === name);
}

function wayOf({
  place,
  change: { kind, name, deleted, restores },
  relay,
  back,
}: Props): [href: string, words: string] {
  const item = deleted ? { new: name, relay, back } : { open: name, relay, back };
  const words = `${deleted ? "Create" : "Open"} ${kind === "access" ? "access slug" : kind} ${name ?? ""}${deleted ? " again" : ""}…`;
  const catalog = (tab: string): [string, string] => [
    pagePath(place, "catalog") + writeQuery({ tab, ...item }),
    words,
  ];
  switch (kind) {
    case "definition":
      return [
        pagePath(place, "relays", name ?? "") +
          writeQuery({ tab: "history", restore: restores, relay: relay ?? name, back }),
        `Restore version ${restores}…`,
      ];
    case "secret":
      return [pagePath(place, "relays", name ?? "") + writeQuery({ tab: "secrets" }), "Open its secrets"];
    case "product":
      return catalog("");
    case "plan":
      return catalog("plans");
    case "access":
      return name === null
        ? [pagePath(place, "catalog") + writeQuery({ tab: "access" }), "Open the access slugs"]
        : catalog("access");
    case "collection":
      return deleted
        ? [pagePath(place, "records") + writeQuery(item), words]
        : [pagePath(place, "records", name ?? ""), words];
    case "mail":
      return [pagePath(place, "mail") + writeQuery({ tab: "server" }), "Open the mail server"];
    case "sender_domain":
      return [pagePath(place, "mail") + writeQuery({ tab: "domain" }), "Open the sender domain"];
    case "processor":
      return [pagePath(place, "settings"), "Open the processor secret"];
  }
}
