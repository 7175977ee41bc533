/**
 * The suites that `npm test` runs a second time with their stores on PostgreSQL: those of the rooms store, event, runner, capture and selling and of
 * the whole service's flow, and what else leans on the store's words, locks and transactions. A suite over a kit's store stands here or, with its
 * reason, among those that do not (`test/house/postgres-suite.test.ts`). Each runs there by `TEST_STORE=postgres bun test <file>`.
 */
const RULES: readonly string[] = [
  ...["dedupe", "event-number", "event-row", "event-list", "event-state", "walk", "effect", "erasure"],
  ...["relay-view", "relay-save", "relay-secret", "relay-template", "save-warning", "live-relay", "overlap", "sender-domain"],
  ...["runner-arrivals", "runner-beside", "runner-claim", "runner-crash", "runner-effect", "runner-order", "runner-warm-up"],
  ...["action-access", "action-grant-credits", "action-plan-sale", "action-product-sale", "action-time", "action-write-record", "email-person"],
  ...["schedule", "schedule-clock", "caretaker", "recent-call-retention", "audit", "alert", "unmailed-alerts", "metric"],
  ...["fruitless", "silence", "health-nodes", "health-standing"],
  ...["capture", "capture-model"],
  ...["access", "arrival-order", "credit", "product", "purchase-receipt", "refund-by-hand", "selling-link", "selling-model"],
  ...["people", "app-removal", "account", "session", "key", "command-key", "client-signin", "mail-settings"],
  ...["collection", "record", "longest-text"],
];

/** Whole services: what arrives, runs, is replayed and shown, of every room at once. */
const FLOWS: readonly string[] = [
  ...[
    "hold-at-once",
    "capture",
    "test-event",
    "replay",
    "bulk-replay",
    "try-now",
    "fix-and-replay",
    "import-missed",
    "receiver",
    "action-rule",
    "run-memory",
  ],
  ...[
    "event-count",
    "event-waits",
    "events-expiring",
    "event-cause",
    "change-stream",
    "schedule",
    "recent-call",
    "recent-call-overlap",
    "unknown-call",
  ],
  ...[
    "purchase-story",
    "store-purchase",
    "plan-arrival",
    "hold-arrival",
    "sale-order",
    "sale-nobody",
    "sale-suspended",
    "told-once",
    "person-story",
    "person-filter",
  ],
  ...[
    "hand-mail",
    "mail-stop",
    "api-account",
    "api-body",
    "client-record",
    "odd-record",
    "sync",
    "app-delete",
    "relay-history",
    "funnel",
    "overview",
    "read-all",
  ],
];

export const POSTGRES_SUITES: readonly string[] = [
  ...RULES.map((name) => `test/rule/${name}.test.ts`),
  ...FLOWS.map((name) => `test/flow/${name}.test.ts`),
];

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
