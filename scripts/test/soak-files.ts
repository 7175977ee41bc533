/**
 * Lists the test files that only the soak runs, each group with its reason. The other files of `test/` run in `npm test`, which must end within
 * minutes. A file that the command line names runs in both.
 */

/** The folder of files that have rounds only for the soak. */
export const SOAK_FOLDER = "test/soak/";

const GROUPS: readonly (readonly [why: string, files: readonly string[]])[] = [
  [
    "Stories over many pages and processes: the parts of each run in npm test by themselves.",
    [
      "test/browser/approval.test.ts",
      "test/browser/client-library.test.ts",
      "test/browser/incident.test.ts",
      "test/browser/laptop-story.test.ts",
      "test/browser/login.test.ts",
      "test/browser/relay-story.test.ts",
      "test/browser/session.test.ts",
      "test/browser/remedy-link.test.ts",
      "test/flow/import-missed-command.test.ts",
      "test/flow/local-sync.test.ts",
      "test/flow/promote-story.test.ts",
      "test/flow/send-here.test.ts",
      "test/flow/sync-story.test.ts",
    ],
  ],
  [
    "Details of a page whose main use npm test tries, each in a browser of its own.",
    [
      "test/browser/attention.test.ts",
      "test/browser/audit-page.test.ts",
      "test/browser/bulk-replay.test.ts",
      "test/browser/request-page.test.ts",
      "test/browser/list-return.test.ts",
      "test/browser/event-rows.test.ts",
      "test/browser/file-page.test.ts",
      "test/browser/deleted-item.test.ts",
      "test/browser/home-page.test.ts",
      "test/browser/hostile-payload.test.ts",
      "test/browser/import-missed.test.ts",
      "test/browser/kept-focus.test.ts",
      "test/browser/keyboard.test.ts",
      "test/browser/link.test.ts",
      "test/browser/live.test.ts",
      "test/browser/mail-page.test.ts",
      "test/browser/many-relays.test.ts",
      "test/browser/number-language.test.ts",
      "test/browser/palette.test.ts",
      "test/browser/payment.test.ts",
      "test/browser/early-action.test.ts",
      "test/browser/relay-editor.test.ts",
      "test/browser/relay-overview.test.ts",
      "test/browser/relay-test-tab.test.ts",
      "test/browser/catalog-page.test.ts",
      "test/browser/settings-page.test.ts",
      "test/browser/retry-now.test.ts",
      "test/browser/wrong-clock.test.ts",
    ],
  ],
  [
    "A PostgreSQL server that stops, falls silent, fills up or is moved: each test starts servers or nodes of its own.",
    [
      "test/flow/away-database.test.ts",
      "test/flow/doctor-postgres.test.ts",
      "test/flow/migrating-node.test.ts",
      "test/flow/move.test.ts",
      "test/flow/node-readiness.test.ts",
      "test/flow/postgres-refusal.test.ts",
      "test/flow/silent-database.test.ts",
      "test/flow/missed-notification.test.ts",
      "test/rule/postgres-break.test.ts",
      "test/rule/postgres-flush.test.ts",
      "test/rule/postgres-silence.test.ts",
    ],
  ],
  [
    "Processes that are killed, disks that fill up, floods of calls and passwords, and commands in processes of their own.",
    [
      "test/attack/client-flood.test.ts",
      "test/attack/full-disk.test.ts",
      "test/attack/login-flood.test.ts",
      "test/attack/lost-output.test.ts",
      "test/attack/outbound-reuse.test.ts",
      "test/attack/proxy-variable.test.ts",
      "test/attack/refused-flood.test.ts",
      "test/attack/signin-lockout.test.ts",
      "test/crash/alert-channel-crash.test.ts",
      "test/crash/bulk-replay-crash.test.ts",
      "test/crash/login-crash.test.ts",
      "test/crash/mail-crash.test.ts",
      "test/flow/backup-copy.test.ts",
      "test/flow/executable-life.test.ts",
      "test/house/test-command.test.ts",
      "test/house/with-bun.test.ts",
      "test/rule/address-lookup.test.ts",
    ],
  ],
  [
    "Large tables: every failure and who is told, every route and its largest call, random lives, every line of the documentation.",
    [
      "test/attack/broken-batch.test.ts",
      "test/attack/planted-secret.test.ts",
      "test/attack/worst-call.test.ts",
      "test/flow/api-fuzz.test.ts",
      "test/flow/client-fuzz.test.ts",
      "test/flow/corrected-person.test.ts",
      "test/flow/docs-example.test.ts",
      "test/flow/docs-shell.test.ts",
      "test/flow/event-cause.test.ts",
      "test/flow/alert.test.ts",
      "test/flow/read-all.test.ts",
      "test/flow/rejection-cause.test.ts",
      "test/flow/run-memory.test.ts",
      "test/flow/sale-without-person.test.ts",
      "test/flow/sale-order.test.ts",
      "test/flow/secret-overlap.test.ts",
      "test/flow/silent-failure.test.ts",
      "test/house/postgres-scan.test.ts",
      "test/rule/retention-size.test.ts",
    ],
  ],
];

/** The files of all groups. */
export const SOAK_FILES: readonly string[] = GROUPS.flatMap(([, files]) => files);

/** Returns true if `npm test` without arguments leaves the file out on SQLite. */
export function isSoakFile(file: string): boolean {
  return file.startsWith(SOAK_FOLDER) || SOAK_FILES.includes(file);
}
