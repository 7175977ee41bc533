/** Manages API keys (`relay keys …`). A new key goes to stdout once, and the store holds only its hash. */

import { writeJson } from "../../../base/json.ts";
import { MAX_PAGE_SIZE } from "../../../base/page.ts";
import {
  COMMAND_LINE,
  formatActor,
  type KeyView,
  listApiKeys,
  mintApiKey,
  revokeApiKey,
} from "../../../platform/account/api-key.ts";
import { listOriginWarnings } from "../../../platform/account/key-origin.ts";
import { KEY_PERMISSIONS, PERMISSIONS, type Permission } from "../../../platform/account/permission.ts";
import { writeAudit } from "../../../platform/audit/audit.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { type Command, UsageError } from "../command.ts";
import { APP, ENVIRONMENT, JSON_OUTPUT, OF_ENVIRONMENT, withEnvironment } from "../data-directory.ts";
import { DATA } from "../service-option.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { printList } from "../terminal/terminal.ts";

export const keysCreate: Command = {
  words: ["keys", "create"],
  summary: "create an API key",
  details: "The command prints the key to standard output. The key is shown only once.",
  options: [
    APP,
    ENVIRONMENT,
    { name: "name", value: "<text>", otherwise: "command line", help: "a name for the key's user" },
    {
      name: "kind",
      value: "<secret|app>",
      otherwise: "secret",
      help: "secret for servers, app for browsers",
      of: ["secret", "app"],
    },
    {
      name: "scope",
      value: "<permission>",
      list: true,
      otherwise: "all that a key can have",
      help: "the permissions of a secret key",
    },
    { name: "origin", value: "<https://host>", list: true, help: "the web origins where an app key works" },
    JSON_OUTPUT,
    ...DATA,
  ],
  examples: ["relay keys create --app shop --environment production --name backend"],
  async run(input, io) {
    const nowMs = io.clock.now();
    const kind = input.choice("kind", ["secret", "app"]) ?? "secret";
    const name = input.text("name") ?? "command line";
    const origins = input.list("origin");
    const scopes = readScopes(input.list("scope"));
    const made = await withEnvironment(input, io, (store, environment) =>
      store.write("dashboard", async (tx) => {
        const { key, token } = await mintApiKey(tx, { environment, kind, name, origins, scopes, nowMs });
        await writeAudit(tx, {
          environmentId: environment.id,
          nowMs,
          by: formatActor(COMMAND_LINE),
          action: "key.created",
          target: `key:${key.id}`,
          after: {
            kind,
            name: key.name,
            hint: key.hint,
            origins: key.origins,
            ...(scopes === null ? {} : { scopes }),
          },
        });
        return { key, token, app: environment.appId, environment: environment.name };
      }),
    );
    const { key, token, app, environment } = made;
    for (const { message } of listOriginWarnings(key.origins)) io.inform(`warning: ${message}`);
    if (input.on("json")) {
      io.print(writeJson({ id: key.id, kind, name: key.name, app, environment, key: token }, 2));
      return;
    }
    io.print(token);
    io.inform(
      `This ${kind} key of ${app}/${environment} is shown once. Revoke it with: relay keys revoke ${key.id}`,
    );
  },
};

function readScopes(given: readonly string[]): Permission[] | null {
  const unknown = given.find((name) => !Object.hasOwn(PERMISSIONS, name));
  if (unknown !== undefined)
    throw new UsageError(
      `--scope ${unknown} is no permission: write one of ${[...KEY_PERMISSIONS].join(", ")}.`,
    );
  return given.length === 0 ? null : (given as Permission[]);
}

export const keysList: Command = {
  words: ["keys", "list"],
  summary: "list an environment's API keys",
  options: [JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay keys list"],
  async run(input, io) {
    const items = await withApi(
      "read",
      input,
      io,
      async (api) => (await api.list<KeyView>("/keys", {}, MAX_PAGE_SIZE)).items,
    );
    await printList(input, io, items, {
      columns: [
        { heading: "ID", value: (key) => key.id },
        { heading: "STATE", value: (key) => stateOf(key, io.clock.now()), tone: true },
        { heading: "KIND", value: (key) => key.kind },
        { heading: "KEY", value: (key) => key.hint },
        { heading: "NAME", value: (key) => key.name, raw: true },
        { heading: "SCOPES", value: (key) => key.scopes?.join(",") ?? "" },
        { heading: "OWNER", value: (key) => key.owner ?? "", raw: true },
        { heading: "LAST USED", value: (key) => key.lastUsedAt ?? "never" },
        { heading: "ENDS", value: (key) => key.expiresAt ?? "" },
      ],
      none: "There are no keys yet: relay keys create creates one.",
    });
  },
};

function stateOf({ revokedAt, expiresAt }: KeyView, nowMs: number): string {
  if (revokedAt !== null) return "revoked";
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? "ended" : "live";
}

export const keysRevoke: Command = {
  words: ["keys", "revoke"],
  summary: "revoke an API key permanently",
  arguments: [{ name: "key id", help: "as relay keys list shows it, or its ending" }],
  options: OF_ENVIRONMENT,
  examples: ["relay keys revoke 7c44d0b1"],
  async run(input, io) {
    const nowMs = io.clock.now();
    const key = await withEnvironment(input, io, async (store, environment) => {
      const id = await expandId(input.first(), "keys", () =>
        store.read(async (tx) => ({ items: (await listApiKeys(tx, environment.id)).items, next: null })),
      );
      return await store.write("dashboard", async (tx) => {
        const revoked = await revokeApiKey(tx, environment.id, id, nowMs);
        await writeAudit(tx, {
          environmentId: environment.id,
          nowMs,
          by: formatActor(COMMAND_LINE),
          action: "key.revoked",
          target: `key:${revoked.id}`,
          before: { kind: revoked.kind, name: revoked.name, hint: revoked.hint },
        });
        return revoked;
      });
    });
    io.inform(`The key ${key.hint} (${key.name}) is revoked.`);
  },
};
