/** Words of the audit for people: who did what to what, each with the page that shows it. */
import { isObject, type Json } from "../base/exact-json.ts";
import { type Place, pagePath } from "../base/place.ts";
import { escapeTricky } from "../base/tricky.ts";

interface Named {
  kind: string;
  name: string;
}

/** Splits `relay:orders` into the kind `relay` and the name `orders`; `command line` has no kind. */
function readNamed(words: string): Named {
  const at = words.indexOf(":");
  return at < 0 ? { kind: "", name: words } : { kind: words.slice(0, at), name: words.slice(at + 1) };
}

const ID = /^[a-z]{3}_[0-9a-f]{32}$/;
const SHOWN_OF_ID = 8;

/** Formats a name of the audit. `known` is the name of an id. An id without a name is shortened to its end. */
export function formatNamed(words: string, known: string | null = null): string {
  const { kind, name } = readNamed(words);
  if (known !== null) return escapeTricky(kind === "person" ? known : `${kind} ${known}`);
  const short = ID.test(name) ? `…${name.slice(-SHOWN_OF_ID)}` : name;
  return kind === "" || kind === "owner" ? short : `${kind.replaceAll("_", " ")} ${short}`;
}

/** Formats `relay.secret_rotated` as "relay secret rotated". */
export function formatAction(action: string): string {
  return action.replaceAll(/[._]/g, " ");
}

/** Returns the page of a name of the audit, or null if it has none or the row does not identify it. `values` holds the row's values. */
export function hrefOf(place: Place, words: string, values: readonly Json[] = []): string | null {
  const { kind, name } = readNamed(words);
  if (name === "") return null;
  switch (kind) {
    case "relay":
      return pagePath(place, "relays", name);
    case "person":
      return pagePath(place, "people", name);
    case "event":
      return pagePath(place, "events", name);
    case "collection":
      return pagePath(place, "records", name);
    case "record":
      return linkTo(values, "collection", (collection) => pagePath(place, "records", collection, name));
    case "grant":
    case "subscription":
      return linkTo(values, "person", (person) => pagePath(place, "people", person));
    case "owner":
      return `${pagePath(place, "settings")}?tab=members`;
    case "session":
      return `${pagePath(place, "settings")}?tab=sessions`;
    case "backup":
      return `${pagePath(place, "settings")}?tab=backups`;
    case "key":
      return `${pagePath(place, "settings")}?tab=keys`;
    case "product":
      return pagePath(place, "catalog");
    case "plan":
      return `${pagePath(place, "catalog")}?tab=plans`;
    case "access":
      return `${pagePath(place, "catalog")}?tab=access`;
    case "purchase":
      return `${pagePath(place, "catalog")}?tab=receipts`;
    default:
      return null;
  }
}

function linkTo(values: readonly Json[], field: string, to: (name: string) => string): string | null {
  for (const value of values) {
    const name = isObject(value) && Object.hasOwn(value, field) ? value[field] : undefined;
    if (typeof name === "string" && name !== "") return to(name);
  }
  return null;
}
