/**
 * Maps commands of the command line to the page that does the same. Messages and mails name commands, and the dashboard
 * links their pages. A command that only a terminal can run has no page.
 */
import type { Permission } from "../../src/platform/account/permission.ts";
import { writeQuery } from "../base/api.ts";
import { type Place, pagePath, readPlace } from "../base/place.ts";

interface CommandPage {
  /** Page and its section, such as `Mail › Sender domain`. */
  words: string;
  href: string;
  /** Button on that page; null if the page only shows data. */
  button: string | null;
  /** Permission without which the page lacks the button. */
  needs: Permission;
}

/** Arguments of the command. A placeholder such as `<name>` is skipped. */
interface Named {
  first: string | undefined;
  flags: ReadonlyMap<string, string>;
}

type Found = readonly [words: string, path: readonly string[], query?: Record<string, string>];
type Way = (named: Named, currentRelay: string | undefined) => Found;

const at =
  (words: string, section: string, tab?: string): Way =>
  () => [words, [section], tab === undefined ? {} : { tab }];

const listed =
  (title: string, section: string): Way =>
  ({ flags }, currentRelay) => {
    const asked = ["relay", "state", "reason", "person"].flatMap((name) => {
      const value = flags.get(name) ?? (name === "relay" ? currentRelay : undefined);
      return value === undefined ? [] : [[name, value] as const];
    });
    const words = asked.map(([, value]) => (value === "any" ? "failed" : value)).join(", ");
    return [words === "" ? title : `${title} › ${words}`, [section], Object.fromEntries(asked)];
  };

const event: Way = (named, relay) =>
  named.first === undefined
    ? listed("Events", "events")(named, relay)
    : [`Events › …${named.first.slice(-6)}`, ["events", named.first]];

const relayAt =
  (tab = "", title = ""): Way =>
  ({ first }, currentRelay) => {
    const name = first ?? currentRelay;
    if (name === undefined) return ["Relays", ["relays"]];
    return [`Relays › ${name}${title === "" ? "" : ` › ${title}`}`, ["relays", name], { tab }];
  };

const CATALOG: Readonly<Record<string, Way>> = {
  collection: at("Records", "records"),
  plan: at("Catalog › Plans", "catalog", "plans"),
  access: at("Catalog › Access", "catalog", "access"),
};
const catalog: Way = (named, relay) =>
  (CATALOG[named.first?.replace(/s$/, "") ?? ""] ?? at("Catalog", "catalog"))(named, relay);

const SETTINGS: Readonly<Record<string, Way>> = {
  mail: at("Mail › Mail server", "mail", "server"),
  alerts: at("Alerts › Alert settings", "alerts", "switches"),
};
const setting: Way = (named, relay) =>
  (SETTINGS[named.first?.split(".")[0] ?? ""] ?? at("Settings", "settings"))(named, relay);

const person: Way = ({ first }) => {
  if (first === undefined) return ["People", ["people"]];
  return first.startsWith("per_")
    ? [`People › …${first.slice(-6)}`, ["people", first]]
    : [`People › ${first}`, ["people"], { q: first }];
};

const records: Way = ({ first }) =>
  first === undefined ? ["Records", ["records"]] : [`Records › ${first}`, ["records", first]];

const RETRY_NOW = "Retry now";
const DOMAIN = at("Mail › Sender domain", "mail", "domain");
const CHANNELS = at("Alerts › Channels", "alerts", "channels");
const FILES = at("Records › Files", "records", "files");
const SECRETS = relayAt("secrets", "Secrets");

/** Pages by command. The button is the one that the message can name. */
const WAYS: Readonly<Record<string, readonly [way: Way, button?: string]>> = {
  "alerts add-channel": [CHANNELS, "Add channel"],
  "alerts channels": [CHANNELS],
  "alerts list": [at("Alerts › All alerts", "alerts", "alerts")],
  "alerts resolve": [at("Alerts › All alerts", "alerts", "alerts"), "Resolve"],
  "alerts remove-channel": [CHANNELS, "Remove…"],
  "alerts set-channel": [CHANNELS, "Change…"],
  "alerts test-channel": [CHANNELS, "Send a test"],
  "audit list": [at("Audit log", "audit-log")],
  backup: [at("Settings › Backups", "settings", "backups"), "Back up now"],
  "backups list": [at("Settings › Backups", "settings", "backups")],
  "backups copy": [at("Settings › Backups", "settings", "backups")],
  "backups endpoint": [at("Settings › Backups", "settings", "backups"), "Save endpoint"],
  "backups schedule": [at("Settings › Backups", "settings", "backups"), "Save schedule"],
  "catalog list": [catalog],
  "catalog set": [catalog],
  "domain remove": [DOMAIN, "Remove…"],
  "domain set": [DOMAIN],
  "domain show": [DOMAIN],
  "domain verify": [DOMAIN, "Check again"],
  "emails list": [listed("Mail", "mail")],
  "emails resend": [listed("Mail", "mail"), "Send again…"],
  "emails stopped": [at("Mail › Unsubscribed", "mail", "stops")],
  "emails test": [at("Mail › Mail server", "mail", "server"), "Send a test mail"],
  "events list": [listed("Events", "events")],
  "events replay": [event, "Replay…"],
  "events retry": [event, RETRY_NOW],
  "events show": [event],
  "files delete": [FILES, "Delete…"],
  "files download": [FILES],
  "files list": [FILES],
  "files upload": [FILES, "Upload a file…"],
  "import-missed": [relayAt(), "Import missed events…"],
  "keys list": [at("Settings › Keys", "settings", "keys")],
  "members require-factor": [at("Settings › Members", "settings", "members")],
  "oidc provider": [at("Settings › Members", "settings", "members")],
  "people activate": [person, "Activate"],
  "people allow-mail": [person, "Allow event mail"],
  "people change-address": [person, "Change address…"],
  "people credits": [person, "Credits…"],
  "people end": [person],
  "people add-token": [person, "Add a token…"],
  "people grant": [person, "Grant access…"],
  "people invite": [at("People", "people"), "Add a person…"],
  "people link": [person, "Link a customer ID…"],
  "people list": [person],
  "people merge": [person, "Merge…"],
  "people remove-token": [person],
  "people set": [person],
  "people show": [person],
  "people stop-mail": [person, "Stop event mail"],
  "people suspend": [person, "Suspend"],
  "people unlink": [person],
  "problems list": [at("Alerts › All problems", "alerts", "problems")],
  "receipts list": [at("Catalog › Receipts", "catalog", "receipts")],
  "receipts move": [at("Catalog › Receipts", "catalog", "receipts")],
  "receipts record": [at("Catalog › Receipts", "catalog", "receipts"), "Record a payment…"],
  "receipts refund": [at("Catalog › Receipts", "catalog", "receipts"), "Refund…"],
  "records delete": [records, "Delete…"],
  "records list": [records],
  "records set": [records],
  "records show": [records],
  "relays delete": [relayAt(), "Delete…"],
  "relays end-overlap": [SECRETS],
  "relays checklist": [relayAt()],
  "relays funnel": [relayAt()],
  "relays history": [relayAt("history", "History")],
  "relays list": [at("Relays", "relays")],
  "relays pause": [relayAt(), "Pause"],
  "relays rejected": [relayAt("missing", "Missing events")],
  "relays restore": [relayAt("history", "History")],
  "relays resume": [relayAt(), "Resume"],
  "relays retry": [relayAt(), RETRY_NOW],
  "relays rotate-secret": [SECRETS],
  "relays set-secret": [SECRETS],
  "relays show": [relayAt()],
  "relays skipped": [relayAt()],
  "replays list": [at("Events", "events")],
  "replays wait": [at("Events", "events")],
  "replays stop": [at("Events", "events")],
  "requests list": [listed("Requests", "requests")],
  "requests show": [listed("Requests", "requests")],
  "requests tail": [listed("Requests", "requests")],
  "settings get": [setting],
  "settings set": [setting],
};

/** Permissions of the buttons, by the first word of the command. */
const NEEDS: Readonly<Record<string, Permission>> = {
  alerts: "edit_settings",
  backup: "manage_server",
  backups: "manage_server",
  domain: "edit_settings",
  emails: "edit_settings",
  events: "replay",
  files: "edit_records",
  people: "act_on_people",
  receipts: "act_on_people",
  records: "edit_records",
  settings: "edit_settings",
};
const OTHER_NEEDS: Readonly<Record<string, Permission>> = {
  "alerts resolve": "replay",
  "emails resend": "replay",
  "relays retry": "replay",
};

/** Returns the page of a command. `address` is the current address. A command has no page if the address has no place, as on a sign-in page. */
export function pageOfCommand(command: string, address: string): CommandPage | null {
  const [currentPlace, words] = [readPlace(address), command.split(" ").slice(1)];
  const own = [words.slice(0, 2).join(" "), words[0] ?? ""].find((name) => Object.hasOwn(WAYS, name));
  if (currentPlace === null || own === undefined) return null;
  const [way, button = null] = WAYS[own] ?? [at("", "")];
  const named = readNamed(words.slice(own.split(" ").length));
  const [section, currentRelay] = currentPlace.rest;
  const [title, path, query = {}] = way(named, section === "relays" ? currentRelay : undefined);
  const isHold = own === "settings set" && named.first === "held";
  return {
    words: title,
    href: pagePath(placeOf(named, currentPlace.place), ...path) + writeQuery(query),
    button: isHold ? "Release the hold" : button,
    needs: OTHER_NEEDS[own] ?? NEEDS[own.split(" ")[0] ?? ""] ?? "edit_definitions",
  };
}

function readNamed(words: readonly string[]): Named {
  const flags = new Map<string, string>();
  let first: string | undefined;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("--")) flags.set(word.slice(2), words[++at] ?? "");
    else if (!word.startsWith("<")) first ??= word;
  }
  return { first, flags };
}

function placeOf({ flags }: Named, currentPlace: Place): Place {
  const asked = readPlace(
    `/apps/${flags.get("app") ?? currentPlace.app}/${flags.get("environment") ?? currentPlace.environment}`,
  );
  return asked?.place ?? currentPlace;
}
