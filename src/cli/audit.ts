/** `relay audit …`: who changed what, when, and what it was before. */
import { type Json, writeJson } from "../ground/json.ts";
import { listDifferences } from "../ground/json-diff.ts";
import { MAX_PAGE_SIZE } from "../ground/page.ts";
import { readPage } from "../store/walk.ts";
import { type AuditView, listAudit } from "../watch/audit.ts";
import type { Command } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { ANYWHERE, atPlace } from "./place.ts";
import { listRemote } from "./remote.ts";
import { sayList } from "./terminal.ts";

const DEFAULT_LIMIT = 20;
const MAX_SHOWN_CHARS = 100;

export const auditList: Command = {
  words: ["audit", "list"],
  summary: "who changed what, newest first, with what it was before; runs with --runs",
  options: [
    { name: "actor", value: "<who>", help: "such as owner:ann@example.com, key:<id>, relay:<name>" },
    { name: "action", value: "<what>", help: "such as relay.changed" },
    { name: "target", value: "<thing>", help: "such as relay:<name>, person:<id>" },
    { name: "runs", help: "runs of relays, instead of changes by people and keys" },
    { name: "limit", value: "<number>", otherwise: String(DEFAULT_LIMIT), help: "how many at most" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay audit list --target relay:orders"],
  async run(input, world) {
    const limit = input.number("limit", { from: 1, to: MAX_PAGE_SIZE }) ?? DEFAULT_LIMIT;
    const filter = {
      kind: input.on("runs") ? ("run" as const) : ("change" as const),
      actor: input.text("actor") ?? undefined,
      action: input.text("action") ?? undefined,
      target: input.text("target") ?? undefined,
    };
    const { items } = await atPlace(input, world, {
      here: (store, { id }) =>
        readPage(store, { limit, after: null }, (tx, part) => listAudit(tx, id, filter, part)),
      there: (remote) => listRemote<AuditView>(remote, "/audit", filter, limit),
    });
    sayList(input, world, items, {
      headings: ["AT", "WHO", "DID", "TO", "WHAT CHANGED"],
      row: (one) => [one.at, one.actor, one.action, one.target, sayChanged(one)],
      none: "Nothing that matches was changed here.",
    });
  },
};

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
