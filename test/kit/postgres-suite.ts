/**
 * The suites that `npm test` runs a second time with their stores on PostgreSQL: of each room above the store the ones that lean on its words, locks
 * and transactions most. Left out are rooms with nothing of a database in them (template, verify, definition, outbound, cli's words), suites of a
 * database file alone (backup, key-log, event-move, table, group-commit, store), suites that open PostgreSQL by themselves (node-*,
 * master-key-nodes), and, for their length there, those that pass days of a clock or a hundred thousand rows: schedule, silence, fruitless, alert,
 * caretaker, erasure, event-state, runner-effect, runner-order, sale-order, run-memory, fix-and-replay. runner-crash leans on the house's lease, whose
 * time is real under any clock. Each of these runs there by `TEST_STORE=postgres bun test <file>`.
 */
const RULES: readonly string[] = [
  ...["dedupe", "event-number", "event-row", "event-list", "walk", "effect"],
  ...["relay-view", "relay-save", "relay-secret", "save-warning", "live-relay", "overlap", "sender-domain"],
  ...["runner-arrivals", "runner-beside", "runner-claim"],
  ...["health-nodes", "recent-call-retention", "audit", "metric"],
  ...["capture", "capture-model"],
  ...["credit", "product", "purchase-receipt", "selling-link", "action-time"],
  ...["people", "app-removal", "account", "session", "command-key", "client-signin"],
  ...["collection", "record"],
];

/** Whole services: what arrives, runs, is replayed and shown, of every room at once. */
const FLOWS: readonly string[] = [
  ...["capture", "test-event", "replay", "receiver"],
  ...["event-count", "event-waits", "change-stream"],
  ...["purchase-story", "store-purchase"],
  ...["hand-mail", "mail-stop", "api-account", "api-body", "client-record"],
];

export const POSTGRES_SUITES: readonly string[] = [
  ...RULES.map((name) => `test/rule/${name}.test.ts`),
  ...FLOWS.map((name) => `test/flow/${name}.test.ts`),
];
