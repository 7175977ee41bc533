/** Button that creates the object that an action needs, and the way back to what waits for it. */
import type { MissingThing } from "../../src/rules/relay/relay-reference.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";

const TABS = { product: "", plan: "plans", access: "access" } as const;
const WORDS = { collection: "collection", product: "product", plan: "plan", access: "access slug" } as const;

/** Page to continue on. An event is named by its id. */
export type WayBack = "home" | "relay" | `evt_${string}`;

/** `changed`: a change was made shortly before, whose undo is the first remedy. */
export function CreateItem({
  place,
  thing: { kind, name, there = false, near = null },
  relay,
  back,
  changed = false,
}: {
  place: Place;
  thing: Omit<MissingThing, "there" | "near"> & Partial<Pick<MissingThing, "there" | "near">>;
  /** Relay whose action names the object. */
  relay: string;
  back: WayBack;
  changed?: boolean;
}): View {
  const to =
    kind === "collection"
      ? pagePath(place, "records") + writeQuery({ new: name, relay, back })
      : pagePath(place, "catalog") +
        writeQuery({ tab: TABS[kind], [there ? "open" : "new"]: name, relay, back });
  const isFirst = near === null && !changed;
  const editor =
    pagePath(place, "relays", relay) +
    writeQuery({ tab: "definition", replace: name, by: near, relay, back });
  return html`${near !== null && html`<a data-needs="edit_definitions" class=${changed ? "button" : "button primary"} href=${editor}>Did you mean ${near}?</a>`}
    <a data-needs="edit_definitions" class=${isFirst ? "button primary" : "button"} href=${to}>${there ? `Sell ${kind} ${name} through this relay…` : `Create ${WORDS[kind]} ${name}…`}</a>`;
}

/** Returns the page to continue on, or null if the user did not come by such a link. Home offers the replay of the relay's dead events. */
export function afterMaking(place: Place, query: URLSearchParams): string | null {
  const relay = query.get("relay");
  if (relay === null || relay === "") return null;
  const back = query.get("back") ?? "";
  if (back.startsWith("evt_")) return pagePath(place, "events", back);
  return back === "relay"
    ? pagePath(place, "relays", relay)
    : pagePath(place, "home") + writeQuery({ replay: relay });
}
