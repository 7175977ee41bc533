/** `relay audit …`: who changed what, when, and what it was before. */
import { type Json, writeJson } from "../ground/json.ts";
import { listDifferences } from "../ground/json-diff.ts";
import { readPage } from "../store/walk.ts";
import { type AuditView, listAudit, WHOLE_SERVER } from "../watch/audit.ts";
import type { Command, Input } from "./command.ts";
import { JSON_OUTPUT, LIMIT, readLimit, withStore } from "./data-directory.ts";
import { ANYWHERE, listAtPlace } from "./place.ts";
import { DATA_DIR } from "./service-option.ts";
import { sayList } from "./terminal.ts";
import type { World } from "./world.ts";

const MAX_SHOWN_CHARS = 100;

export const auditList: Command = {
  words: ["audit", "list"],
  summary: "who changed what, newest first, with what it was before; runs with --runs",
  options: [
    { name: "actor", value: "<who>", help: "such as owner:ann@example.com, key:<id>, relay:<name>" },
    { name: "action", value: "<what>", help: "such as relay.changed" },
    { name: "target", value: "<thing>", help: "such as relay:<name>, person:<id>" },
    { name: "runs", help: "runs of relays, instead of changes by people and keys" },
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay audit list --target relay:orders"],
  async run(input, world) {
    const filter = {
      kind: input.on("runs") ? ("run" as const) : ("change" as const),
      actor: input.text("actor") ?? undefined,
      action: input.text("action") ?? undefined,
      target: input.text("target") ?? undefined,
    };
    const { items } = await listAtPlace<AuditView>(input, world, "/audit", filter, (tx, id, part) =>
      listAudit(tx, id, filter, part),
    );
    sayAudit(input, world, items);
  },
};

/** What belongs to no environment: owners, their sessions, apps, logins, backups. */
export const adminAudit: Command = {
  words: ["admin", "audit"],
  summary: "who changed what of the whole server: owners, sessions, apps, backups",
  options: [LIMIT, JSON_OUTPUT, DATA_DIR],
  async run(input, world) {
    const limit = readLimit(input);
    const { items } = await withStore(input, world, (store) =>
      readPage(store, { limit, after: null }, (tx, part) => listAudit(tx, WHOLE_SERVER, {}, part)),
    );
    sayAudit(input, world, items);
  },
};

function sayAudit(input: Input, world: World, items: readonly AuditView[]): void {
  sayList(input, world, items, {
    headings: ["AT", "WHO", "DID", "TO", "WHAT CHANGED"],
    row: (one) => [one.at, one.actor, one.action, one.target, sayChanged(one)],
    none: "Nothing that matches was changed here.",
  });
}

/** The fields that differ with both values, in a line. */
function sayChanged({ before, after }: AuditView): string {
  const fields = listDifferences((before ?? {}) as Json, (after ?? {}) as Json);
  const line = fields
    .map(({ field, before: was, after: is }) =>
      was === undefined ? `${field} ${say(is)}` : `${field} ${say(was)} -> ${say(is)}`,
    )
    .join(", ");
  return line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS)}…` : line;
}

function say(value: Json | undefined): string {
  return value === undefined ? "(nothing)" : typeof value === "string" ? value : writeJson(value);
}
