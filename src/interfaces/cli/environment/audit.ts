/** Lists who changed what and when, with the value before (`relay audit …`). */
import { type Json, writeJson } from "../../../base/json.ts";
import { listDifferences } from "../../../base/json-diff.ts";
import { type AuditView, listAudit, SERVER_SCOPE } from "../../../platform/audit/audit.ts";
import { listItems } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA } from "../service-option.ts";
import { gather, LIMIT, type Listing, pagesOf, readLimit, SINCE } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";

const MAX_SHOWN_CHARS = 100;
const TIME = { of: (one: AuditView) => one.at, ordered: true };

export const auditList: Command = {
  words: ["audit", "list"],
  summary: "list who changed what, with the value before",
  details: "The newest change is first.",
  options: [
    {
      name: "actor",
      value: "<who>",
      help: "only changes by this actor: owner:ann@example.com, key:<id>, relay:<name>",
    },
    { name: "action", value: "<what>", help: "only this action, such as relay.updated" },
    { name: "target", value: "<thing>", help: "only changes of this: relay:<name>, person:<id>" },
    { name: "runs", help: "list the runs of relays instead of changes by people and keys" },
    SINCE,
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay audit list --target relay:orders"],
  async run(input, io) {
    const filter = {
      kind: input.on("runs") ? ("run" as const) : ("change" as const),
      actor: input.text("actor") ?? undefined,
      action: input.text("action") ?? undefined,
      target: input.text("target") ?? undefined,
    };
    await printAudit(input, io, await listItems<AuditView>(input, io, "/audit", filter, TIME));
  },
};

/** Lists the changes that belong to no environment: owners, their sessions, apps, sign-ins, backups. */
export const adminAudit: Command = {
  words: ["admin", "audit"],
  summary: "list who changed the server's owners and apps",
  details: "These changes belong to no environment: owners, sessions, apps, sign-ins and backups.",
  options: [SINCE, LIMIT, JSON_OUTPUT, ...DATA],
  examples: ["relay admin audit --since 7d"],
  async run(input, io) {
    const asked = { limit: readLimit(input), time: TIME };
    const changes = await withStore(input, io, (store) => {
      const pages = pagesOf(store, (tx, part) => listAudit(tx, SERVER_SCOPE, {}, part));
      return gather(input, io, pages, asked);
    });
    await printAudit(input, io, changes);
  },
};

async function printAudit(input: Input, io: Io, changes: Listing<AuditView>): Promise<void> {
  // A terminal shows the name of an actor or target instead of its id. A script gets the id.
  const named = (words: string, name: string | null): string =>
    io.screen.columns === null || input.on("whole") || name === null
      ? words
      : words.replace(/:.*/s, `:${name}`);
  await printList(input, io, changes, {
    columns: [
      { heading: "AT", value: (one) => one.at },
      { heading: "WHO", value: (one) => named(one.actor, one.actorName) },
      { heading: "DID", value: (one) => one.action },
      { heading: "TO", value: (one) => named(one.target, one.targetName) },
      { heading: "WHAT CHANGED", value: formatChanged },
    ],
    none: "No change matches.",
  });
}

/** Formats the fields that differ, with both values, in one line. */
function formatChanged({ before, after }: AuditView): string {
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
