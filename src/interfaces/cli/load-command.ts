/**
 * Loads the modules of the commands with one first word. Most of a command's time is the loading of code, so it loads no other command. The list of
 * all commands, which help needs, is registry.ts.
 */
import type { Command } from "./command.ts";

/** The modules of a first word. Each exports commands, and may export more. */
const MODULES: Readonly<Record<string, readonly (() => Promise<object>)[]>> = {
  admin: [() => import("./server/admin.ts"), () => import("./environment/audit.ts")],
  alerts: [() => import("./environment/alerts.ts"), () => import("./environment/alert-channels.ts")],
  apps: [() => import("./server/apps.ts")],
  audit: [() => import("./environment/audit.ts")],
  backup: [() => import("./server/backup.ts")],
  backups: [
    () => import("./server/backup-copy.ts"),
    () => import("./server/backup-endpoint.ts"),
    () => import("./server/backup-schedule.ts"),
  ],
  capture: [() => import("./relays/capture.ts")],
  catalog: [() => import("./catalog/catalog.ts")],
  changes: [() => import("./changes.ts")],
  completion: [() => import("./line/completion.ts")],
  config: [() => import("./server/config.ts")],
  dev: [() => import("./server/dev.ts")],
  docs: [() => import("./docs.ts")],
  doctor: [() => import("./server/doctor.ts")],
  domain: [() => import("./environment/domain.ts")],
  emails: [() => import("./environment/emails.ts")],
  events: [
    () => import("./events/events.ts"),
    () => import("./events/replay.ts"),
    () => import("./events/retry.ts"),
  ],
  files: [() => import("./catalog/files.ts")],
  guess: [() => import("./relays/guess.ts")],
  "import-missed": [() => import("./events/import-missed.ts")],
  init: [() => import("./sync/init.ts")],
  keys: [() => import("./environment/keys.ts")],
  licenses: [() => import("./licenses.ts")],
  limits: [() => import("./environment/limits.ts")],
  login: [() => import("./session/login.ts")],
  logout: [() => import("./session/login.ts")],
  mcp: [() => import("./session/mcp.ts")],
  members: [() => import("./server/members.ts")],
  move: [() => import("./server/move.ts")],
  oidc: [() => import("./server/oidc.ts")],
  people: [
    () => import("./people/people.ts"),
    () => import("./people/change-address.ts"),
    () => import("./people/credits.ts"),
    () => import("./people/customer.ts"),
    () => import("./people/end.ts"),
    () => import("./people/grant.ts"),
    () => import("./people/invite.ts"),
    () => import("./people/mail.ts"),
    () => import("./people/merge.ts"),
    () => import("./people/set.ts"),
    () => import("./people/suspend.ts"),
    () => import("./people/token.ts"),
  ],
  presets: [() => import("./sync/presets.ts")],
  problems: [() => import("./environment/alerts.ts")],
  promote: [() => import("./sync/promote.ts")],
  pull: [() => import("./sync/pull.ts")],
  ready: [() => import("./server/ready.ts")],
  receipts: [
    () => import("./catalog/receipts.ts"),
    () => import("./catalog/receipt-move.ts"),
    () => import("./catalog/receipt-record.ts"),
  ],
  records: [() => import("./catalog/records.ts"), () => import("./catalog/record-edit.ts")],
  relays: [
    () => import("./relays/relays.ts"),
    () => import("./relays/cases.ts"),
    () => import("./relays/delete.ts"),
    () => import("./relays/rejected.ts"),
    () => import("./relays/secrets.ts"),
    () => import("./relays/skipped.ts"),
    () => import("./relays/versions.ts"),
    () => import("./events/retry.ts"),
  ],
  replays: [() => import("./events/bulk-replay.ts")],
  requests: [() => import("./events/calls.ts")],
  restore: [() => import("./server/backup.ts")],
  schema: [() => import("./sync/init.ts")],
  send: [() => import("./events/send.ts")],
  serve: [() => import("./server/serve.ts")],
  settings: [() => import("./environment/settings.ts")],
  simulate: [() => import("./events/simulate.ts")],
  status: [() => import("./sync/status.ts")],
  sync: [() => import("./sync/sync.ts")],
  upgrade: [() => import("./server/upgrade.ts")],
  validate: [() => import("./sync/validate.ts")],
  verifiers: [() => import("./relays/verifiers.ts")],
  whoami: [() => import("./session/whoami.ts")],
};

/** Returns the commands that begin with this word, or none for a word that begins no command or whose commands are loaded with all others. */
export async function loadCommands(first: string): Promise<readonly Command[]> {
  const modules = await Promise.all((MODULES[first] ?? []).map((load) => load()));
  return modules
    .flatMap((one) => Object.values(one).filter(isCommand))
    .filter(({ words }) => words[0] === first);
}

function isCommand(exported: unknown): exported is Command {
  return typeof exported === "object" && exported !== null && "words" in exported && "run" in exported;
}
