/** Lists, creates, renames and deletes apps with their environments (`relay apps …`). */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { toIso } from "../../../base/clock.ts";
import { writeJson } from "../../../base/json.ts";
import {
  type AppContents,
  countApp,
  deleteApp,
  emptyApp,
  endRemoval,
} from "../../../engine/maintenance/app-removal.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { createApp, listApps, renameApp } from "../../../platform/account/app.ts";
import { findLocalEnvironment, listEnvironments } from "../../../platform/account/environment.ts";
import { SERVER_SCOPE, writeAudit } from "../../../platform/audit/audit.ts";
import type { Store } from "../../../store/port.ts";
import {
  DataDirectoryTaken,
  type DirectoryLock,
  lockDataDirectory,
} from "../../../store/sqlite/directory-lock.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import { JSON_OUTPUT, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA, readDataDir } from "../service-option.ts";
import { requireYes } from "../terminal/confirm.ts";
import { printList } from "../terminal/terminal.ts";

export const appsCreate: Command = {
  words: ["apps", "create"],
  summary: "create an app with its two environments",
  details: "The environments are development and production.",
  arguments: [{ name: "name", help: "the app's name for people" }],
  options: [
    {
      name: "id",
      value: "<id>",
      otherwise: "derived from the name",
      help: "part of every receiver URL; it never changes",
    },
    JSON_OUTPUT,
    ...DATA,
  ],
  examples: ['relay apps create "My shop" --id shop --data-dir /var/lib/relay'],
  async run(input, io) {
    requireServerFolder(input, io);
    const nowMs = io.clock.now();
    const { app, environments } = await withStore(
      input,
      io,
      (store) =>
        store.write("dashboard", async (tx) => {
          if ((await findLocalEnvironment(tx)) !== null) throw rejectLocal(readDataDir(input, io));
          const made = await createApp(tx, {
            id: input.text("id") ?? undefined,
            name: input.first(),
            environments: ["development", "production"],
            nowMs,
          });
          await writeAudit(tx, {
            environmentId: SERVER_SCOPE,
            nowMs,
            by: formatActor(COMMAND_LINE),
            action: "app.created",
            target: `app:${made.app.id}`,
            after: { id: made.app.id, name: made.app.name },
          });
          return made;
        }),
      { create: true },
    );
    const names = environments.map((environment) => environment.name);
    if (input.on("json")) {
      io.print(writeJson({ id: app.id, name: app.name, environments: names }, 2));
      return;
    }
    io.print(app.id);
    io.inform(
      `The app ${app.name} has the environments ${names.join(" and ")}. Next: relay keys create --app ${app.id} --environment ${names[0]}`,
    );
  },
};

function rejectLocal(folder: string): CommandFailure {
  return new CommandFailure(
    "database_refused",
    `${folder} belongs to local development (relay dev), which has one app with the environment local. For another app on this machine, run relay dev in another folder. For a server, name its data directory, such as --data-dir /var/lib/relay.`,
  );
}

/** Refuses a project's folder. An app or an owner made there by mistake would leave a server's database for relay dev to find. */
export function requireServerFolder(input: Input, io: Io): void {
  const folder = readDataDir(input, io);
  if (input.text("data-dir") !== null || existsSync(join(folder, "relay.db"))) return;
  if (existsSync(join(io.cwd, "service", "relays"))) throw rejectLocal(folder);
}

export const appsList: Command = {
  words: ["apps", "list"],
  summary: "list the apps of a data directory",
  options: [JSON_OUTPUT, ...DATA],
  examples: ["relay apps list"],
  async run(input, io) {
    const items = await withStore(input, io, (store) =>
      store.read(async (tx) => {
        const environments = await listEnvironments(tx, null);
        return (await listApps(tx)).map((app) => ({
          id: app.id,
          name: app.name,
          environments: environments.filter(({ appId }) => appId === app.id).map(({ name }) => name),
          createdAt: toIso(app.createdAt),
        }));
      }),
    );
    await printList(input, io, items, {
      columns: [
        { heading: "ID", value: (app) => app.id },
        { heading: "NAME", value: (app) => app.name, raw: true },
        { heading: "ENVIRONMENTS", value: (app) => app.environments.join(", ") },
        { heading: "CREATED", value: (app) => app.createdAt },
      ],
      none: "There are no apps yet: relay apps create <name> creates one.",
    });
  },
};

export const appsRename: Command = {
  words: ["apps", "rename"],
  summary: "change the name of an app",
  details:
    "The dashboard and mail show the name. The app's id never changes, because it is part of every receiver URL.",
  arguments: [
    { name: "app id", help: "as relay apps list shows it", of: "app" },
    { name: "name", help: "the new name for people" },
  ],
  options: [JSON_OUTPUT, ...DATA],
  examples: ['relay apps rename shop "Our shop" --data-dir /var/lib/relay'],
  async run(input, io) {
    const [id = "", name = ""] = input.positionals;
    const { before, after } = await withStore(input, io, (store) =>
      store.write("dashboard", async (tx) => {
        const renamed = await renameApp(tx, id, name);
        if (renamed.before.name !== renamed.after.name)
          await writeAudit(tx, {
            environmentId: SERVER_SCOPE,
            nowMs: io.clock.now(),
            by: formatActor(COMMAND_LINE),
            action: "app.renamed",
            target: `app:${id}`,
            before: { name: renamed.before.name },
            after: { name: renamed.after.name },
          });
        return renamed;
      }),
    );
    const changed = before.name !== after.name;
    if (input.on("json")) io.print(writeJson({ id, name: after.name, before: before.name, changed }, 2));
    io.inform(
      changed
        ? `The app ${id} has the name ${after.name} now. Its old name was ${before.name}. Its id is still ${id}.`
        : `The app ${id} already has the name ${after.name}: nothing changed.`,
    );
  },
};

export const appsDelete: Command = {
  words: ["apps", "delete"],
  summary: "delete an app with all its data",
  details:
    "The command first shows what the app contains. The receivers answer unknown_receiver within a second, and all keys and schedules end. The running server or this command then removes the data in small steps. Only the dashboard's Settings can delete an app whose production has events. Earlier backups still contain the app.",
  arguments: [{ name: "app id", help: "as relay apps list shows it", of: "app" }],
  options: [
    {
      name: "confirm",
      value: "<app id>",
      help: "the app's id again; confirms the deletion without a question",
    },
    JSON_OUTPUT,
    ...DATA,
  ],
  examples: ["relay apps delete trial --confirm trial --data-dir /var/lib/relay"],
  async run(input, io) {
    const appId = input.first();
    await withStore(input, io, async (store) => {
      const contents = await countApp(store, appId);
      if (!input.on("json")) io.inform(formatContents(contents));
      const confirm = input.text("confirm") ?? (await askToDelete(contents, io));
      const by = formatActor(COMMAND_LINE);
      const nowMs = io.clock.now();
      await store.write("dashboard", (tx) =>
        deleteApp(tx, { appId, confirm, force: false, contents, by, nowMs }),
      );
      if (input.on("json")) io.print(writeJson({ deleted: contents }, 2));
      const isEmptied = await emptyHere(store, appId, input, io);
      io.inform(
        isEmptied
          ? `The app ${appId} and its data are deleted. Only earlier backups still contain it.`
          : `The app ${appId} is deleted. The running server, or the next one that starts, removes its data.`,
      );
    });
  },
};

/** Formats the contents of an app, with a line for each environment. */
function formatContents({ app, environments }: AppContents): string {
  const lines = environments.map(({ name, words }) => `  ${name}: ${words}`);
  return [`The app ${app.id} (${app.name}) contains:`, ...lines].join("\n");
}

/** Asks before the deletion, and returns the app's id after a yes. */
async function askToDelete({ app, standsAgainst }: AppContents, io: Io): Promise<string> {
  if (standsAgainst !== null) throw new CommandFailure("in_use", standsAgainst);
  await requireYes(io, {
    question: `Delete ${app.id} with all of that permanently?`,
    undone: "Nothing was deleted",
    line: `relay apps delete ${app.id} --confirm ${app.id}`,
  });
  return app.id;
}

/** Empties the app if no server runs that would do it. Returns true if it did. */
async function emptyHere(store: Store, appId: string, input: Input, io: Io): Promise<boolean> {
  let lock: DirectoryLock;
  try {
    lock = lockDataDirectory(readDataDir(input, io), "relay apps delete", io.clock.now());
  } catch (error) {
    if (error instanceof DataDirectoryTaken) return false;
    throw error;
  }
  try {
    while (await store.write("erasure", (tx) => emptyApp(tx, appId)));
    return await store.write("erasure", (tx) => endRemoval(tx, appId, io.clock.now()));
  } finally {
    lock.release();
  }
}
