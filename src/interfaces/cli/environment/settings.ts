/**
 * Shows an environment's settings, and changes one by name (`relay settings …`). It reads a secret only from stdin, so neither the process
 * list nor the shell history contains it.
 */

import { isJsonObject, type Json, type JsonObject, writeJson } from "../../../base/json.ts";
import type { Warning } from "../../../base/refusal.ts";
import type { SettingsView } from "../../../rules/settings/settings.ts";
import { formatPickupDelay, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT, readRunningLimits } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { ALLOW_PRIVATE, BASE_URL, readDataDir } from "../service-option.ts";
import { printList } from "../terminal/terminal.ts";

type Setting = Json | undefined;
/** The answer to a change. A server of version 0.10 sends no warnings. */
type Changed = { settings: SettingsView; warnings?: Warning[] };
type Kind = "switch" | "text" | "secret" | "json";

/** The settings that can be set, with the names of `PUT …/settings`. The switches of alerts are not listed. */
const NAMES: Readonly<Record<string, { kind: Kind; help: string }>> = {
  held: { kind: "switch", help: "on stores events and runs none; off runs the waiting events in order" },
  processorSecret: { kind: "secret", help: "the secret of the scheme processor; none removes it" },
  "mail.sends": { kind: "switch", help: "off sends no mail" },
  "mail.fromName": { kind: "text", help: "the name before the sender's address; none removes it" },
  "mail.replyTo": { kind: "text", help: "the address for replies; none removes it" },
  "mail.smtp": {
    kind: "json",
    help: '{ "host": …, "port": …, "security": "starttls", "username": … }; give the password on standard input',
  },
  "receipts.collection": { kind: "text", help: "the collection for receipts; none removes it" },
  "connector.writes": { kind: "switch", help: "off lets assistants only read; see relay mcp" },
  "connector.saves": {
    kind: "switch",
    help: "on also lets assistants save relays and the catalog; not in production",
  },
  "approvals.secondPerson": {
    kind: "switch",
    help: "on requires the approval of another person for changes of production",
  },
  "signin.invitedOnly": { kind: "switch", help: "on lets only known people sign in" },
};
const PATH = "/settings";
const ALERTS = "alerts.";
const HELP = Object.entries(NAMES).map(([name, { help }]) => `  ${name}: ${help}`);

export const settingsGet: Command = {
  words: ["settings", "get"],
  summary: "show the settings and limits of an environment",
  details:
    "Secrets are never shown. The limits are those of the server that runs here. Without a server they come from the RELAY_LIMIT_… variables of this command.",
  arguments: [{ name: "name", help: "one setting, such as mail.sends", optional: true }],
  options: [JSON_OUTPUT, BASE_URL, ...ANYWHERE],
  examples: ["relay settings get", "relay settings get mail --json"],
  async run(input, io) {
    const { settings, limits } = await withApi("read", input, io, async (api) => ({
      settings: (await api.request<{ settings: SettingsView }>("GET", PATH)).settings,
      limits: api.isLocal
        ? formatLimitSource(input, io)
        : "These are the limits with which the server started.",
    }));
    const wanted = input.positionals[0];
    const found = wanted === undefined ? settings : at(settings as JsonObject, shownAs(wanted));
    if (found === undefined) {
      throw new UsageError(`There is no setting ${wanted}: relay settings get shows them all.`);
    }
    if (input.on("json")) io.print(writeJson(found as Json, 2));
    else
      await printList(input, io, listValues(wanted ?? "", found as Json), {
        columns: [
          { heading: "SETTING", value: ([name = ""]) => name },
          { heading: "VALUE", value: ([, value = ""]) => value, wrap: true },
        ],
        none: "There is no setting.",
      });
    if (wanted === undefined || wanted.split(".")[0] === "limits") io.inform(limits);
  },
};

/** Returns the field that shows a setting: `held` is shown as the time since when. */
function shownAs(name: string): string {
  return name === "held" ? "heldAt" : name;
}

function formatLimitSource(input: Input, io: Io): string {
  return readRunningLimits(readDataDir(input, io)) === null
    ? "No server runs here, so these limits come from the RELAY_LIMIT_… variables of this command."
    : "These are the limits with which the server started.";
}

export const settingsSet: Command = {
  words: ["settings", "set"],
  summary: "change one setting",
  details: [
    "Names of settings:",
    ...HELP,
    "  alerts.<code>: on or off; relay settings get lists them",
    "Limits are not settings. To raise one, start the server with its RELAY_LIMIT_… variable.",
  ].join("\n"),
  arguments: [
    { name: "name", help: "one of the names above", of: Object.keys(NAMES) },
    {
      name: "value",
      help: "on, off, a text, JSON or none; give a secret on standard input",
      optional: true,
    },
  ],
  options: [ALLOW_PRIVATE, JSON_OUTPUT, BASE_URL, ...ANYWHERE],
  examples: [
    "relay settings set held on",
    "relay settings set processorSecret < secret.txt",
    "relay settings set alerts.relay_silent off",
    `relay settings set mail.smtp '{"host":"smtp.example.com","username":"ada"}' < password.txt`,
  ],
  async run(input, io) {
    const [name = "", text] = input.positionals;
    const value = await readValue(name, text, io);
    const change = nest(name.split("."), value);
    let foundSoon = "";
    const { settings, warnings = [] } = await withApi("write", input, io, async (api) => {
      // A hold takes effect at once. A server reads its release and a secret once a second.
      if ((name === "held" && value === false) || kindOf(name) === "secret")
        foundSoon = formatPickupDelay(api, input, io);
      const { version } = (await api.request<{ settings: SettingsView }>("GET", PATH)).settings;
      const body = { version, ...change };
      return await api.request<Changed>("PUT", PATH, body);
    });
    if (input.on("json")) io.print(writeJson({ settings, warnings } as object as Json, 2));
    const shown = (at(settings as JsonObject, shownAs(name)) ?? null) as Json;
    io.inform(
      isJsonObject(shown)
        ? `${name} is set: ${writeJson(shown)}${foundSoon === "" ? "" : `.${foundSoon}`}`
        : `${name} is ${formatValue(shownAs(name), shown)}.${foundSoon}`,
    );
    for (const { message } of warnings) io.inform(`warning: ${message}`);
  },
};

function kindOf(name: string): Kind | undefined {
  if (name.startsWith(ALERTS)) return "switch";
  return Object.hasOwn(NAMES, name) ? NAMES[name]?.kind : undefined;
}

async function readValue(name: string, text: string | undefined, io: Io): Promise<Json> {
  const kind = kindOf(name);
  if (kind === undefined) {
    throw new UsageError(
      `There is no setting ${name}: write one of ${Object.keys(NAMES).join(", ")}, or alerts.<code>.`,
    );
  }
  if (kind === "secret") {
    if (text === "none") return null;
    if (text !== undefined)
      throw new UsageError(`${name} is a secret: give it on standard input, or write none to remove it.`);
    const secret = (await io.readInput()).trim();
    if (secret !== "") return secret;
    throw new UsageError(
      `Standard input was empty: give the secret as in relay settings set ${name} < file.`,
    );
  }
  if (text === undefined)
    throw new UsageError(`relay settings set ${name} needs a value: ${NAMES[name]?.help ?? "on or off"}.`);
  if (kind === "switch") {
    if (text === "on" || text === "off") return text === "on";
    throw new UsageError(`${name} is ${JSON.stringify(text)}: write on or off.`);
  }
  if (text === "none") return null;
  return kind === "text" ? text : await readServer(name, text, io);
}

/** Reads a mail server. One with a user name needs a password. */
async function readServer(name: string, text: string, io: Io): Promise<Json> {
  let server: unknown;
  try {
    server = JSON.parse(text);
  } catch {}
  if (!isJsonObject(server))
    throw new UsageError(`${name} is not a JSON object: write ${NAMES[name]?.help}.`);
  if ("password" in server)
    throw new UsageError("password is a secret: leave it out and give it on standard input.");
  if (server.username === undefined || server.username === null) return server;
  const password = (await io.readInput()).trim();
  return password === "" ? server : { ...server, password };
}

function nest(names: readonly string[], value: Json): JsonObject {
  const [name = "", ...rest] = names;
  return { [name]: rest.length === 0 ? value : nest(rest, value) };
}

function at(value: JsonObject, name: string): Setting {
  let found: Setting = value;
  for (const part of name.split(".")) {
    if (!isJsonObject(found) || !Object.hasOwn(found, part)) return undefined;
    found = found[part];
  }
  return found;
}

/** Formats a value as `settings set` accepts it, if it can be set: on, off, none. */
function formatValue(name: string, value: Json): string {
  if (name === "heldAt" || name === "held") return value === null ? "off" : `on since ${value}`;
  if (typeof value === "string") return value;
  if (value === null) return "none";
  if (typeof value !== "boolean") return writeJson(value);
  const [yes, no] = kindOf(name) === "switch" ? ["on", "off"] : ["yes", "no"];
  return value ? yes : no;
}

/** Lists each value under its dotted name. */
function listValues(name: string, value: Json): string[][] {
  if (!isJsonObject(value)) return [[name === "heldAt" ? "held" : name, formatValue(name, value)]];
  return Object.entries(value).flatMap(([part, one]) =>
    listValues(name === "" ? part : `${name}.${part}`, one as Json),
  );
}
