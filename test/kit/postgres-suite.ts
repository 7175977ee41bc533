/**
 * The suites that run a second time with their stores on PostgreSQL. `npm test` runs those of the store, the runner, change capture, people and
 * selling. `npm run test:soak` and `npm test -- --postgres` also run those that move a clock by days or show what both databases store alike. A suite
 * over a kit's store is in one of these lists or, with its reason, among those that do not (`test/house/postgres-suite.test.ts`). One suite runs there
 * by `npm test -- --postgres <file>`.
 */
const RULES: readonly string[] = [
  ...["dedupe", "event-number", "event-row", "event-list", "event-state", "walk", "effect", "erasure"],
  ...["relay-view", "relay-save", "relay-secret", "relay-template", "save-warning", "live-relay", "overlap", "sender-domain"],
  ...["runner-ready-buffer", "runner-inline", "runner-claim", "runner-crash", "runner-effect", "runner-order", "runner-release", "runner-warm-up"],
  ...["action-access", "action-grant-credits", "action-plan-sale", "action-product-sale", "action-time", "action-write-record", "email-person"],
  ...["recent-call-retention", "audit", "metric", "health-standing"],
  ...["capture", "capture-model"],
  ...["access", "arrival-order", "credit", "product", "purchase-receipt", "refund-by-hand", "selling-link", "selling-model"],
  ...["people", "app-removal", "account", "session", "key", "command-key", "client-signin", "mail-settings"],
  ...["collection", "record", "longest-text"],
];

const FLOWS: readonly string[] = [
  ...["hold-at-once", "capture", "replay", "bulk-replay", "try-now", "receiver", "action-rule", "change-stream"],
  ...["store-purchase", "corrected-person", "plan-arrival", "hold-arrival", "arrival-lives", "sale-suspended", "sync", "app-delete", "read-all"],
];

const LONG_RULES: readonly string[] = [
  ...["schedule", "schedule-clock", "caretaker", "alert", "unmailed-alerts", "fruitless", "silence", "health-nodes"],
];

const LONG_FLOWS: readonly string[] = [
  ...["test-event", "fix-and-replay", "import-missed", "run-memory", "event-count", "event-waits", "events-expiring", "event-cause"],
  ...["schedule", "recent-call", "recent-call-overlap", "unknown-call", "purchase-story", "sale-order", "sale-nobody", "told-once"],
  ...["person-story", "person-filter", "hand-mail", "mail-stop", "api-account", "api-body", "client-record", "odd-record"],
  ...["relay-history", "funnel", "overview"],
];

const pathsOf = (rules: readonly string[], flows: readonly string[]): string[] => [
  ...rules.map((name) => `test/rule/${name}.test.ts`),
  ...flows.map((name) => `test/flow/${name}.test.ts`),
];

/** These run on PostgreSQL only in the soak and where the database is named. */
export const LONG_POSTGRES_SUITES: readonly string[] = pathsOf(LONG_RULES, LONG_FLOWS);
export const POSTGRES_SUITES: readonly string[] = [...pathsOf(RULES, FLOWS), ...LONG_POSTGRES_SUITES];

/** Why a suite over a kit's store does not run there again, and which. */
export const FILE_ALONE: readonly (readonly [why: string, suites: readonly string[]])[] = [
  ["It is about a database file: its bytes, its copies, its folder.", ["rule/retention-size", "rule/backup", "flow/backup"]],
  ["It opens PostgreSQL by itself.", ["rule/node-holding", "rule/node-share", "rule/master-key-nodes", "flow/two-nodes", "flow/move"]],
  [
    "It is about a command, the executable's package or the mail server.",
    [
      "rule/cli-account",
      "rule/packaging",
      "rule/mail-smtp",
      "flow/ready-command",
      "flow/people-end",
      "flow/people-invite",
      "flow/relays-delete",
      "flow/receipts-record",
      "flow/receipts-refund",
      "flow/files-command",
      "flow/records-command",
      "flow/people-grant",
      "flow/people-credits",
      "flow/people-set",
      "flow/people-suspend",
    ],
  ],
  ["It is about calls that leave, over sockets.", ["rule/outbound-kept", "flow/attack-crossing"]],
  [
    "It is about how a call is verified, or what is told of one that was not.",
    ["flow/handshake", "flow/named-sender", "flow/provider-request", "flow/sender", "flow/refused-cause", "flow/call-told", "flow/secret-overlap"],
  ],
  [
    "It is about the words, the doors and the limits of HTTP: what its routes store, the suites of the rooms below store on both.",
    [
      ...["flow/api-dashboard", "flow/api-error", "flow/api-event", "flow/api-fuzz", "flow/api-gate", "flow/api-people", "flow/api-record"],
      ...["flow/api-relay", "flow/api-server", "flow/api-setting", "flow/api-signin", "flow/approval", "flow/login", "flow/owner-told"],
      ...[
        "flow/anywhere",
        "flow/client-door",
        "flow/client-fuzz",
        "flow/client-library",
        "flow/client-words",
        "flow/connector",
        "flow/connector-wire",
        "flow/list-filter",
      ],
      ...["flow/docs-example", "flow/docs-page", "flow/explain", "flow/metrics", "flow/public-folder", "rule/listening"],
    ],
  ],
];
