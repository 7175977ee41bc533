/**
 * Lists the suites that run a second time with their stores on PostgreSQL. `npm test` runs those that need the other database most: the statements of
 * the store, leases, order, dedupe, change capture, and one suite of each module. `npm run test:soak` and `npm test -- --postgres` also run the
 * others. A suite over a kit's store must be in one of these lists, or in the list of exceptions with a reason (`test/house/postgres-suite.test.ts`).
 * `npm test -- --postgres <file>` runs one suite on PostgreSQL.
 */
const RULES: readonly string[] = [
  // Single rows and lists of the store.
  ...[
    "dedupe",
    "event-number",
    "event-list",
    "bulk-plan",
    "index-scan",
    "effect",
    "erasure",
    "recent-call-retention",
    "audit",
    "metrics",
    "health-open-problem",
    "trouble-hint",
  ],
  // Several nodes and transactions.
  ...["runner-ready-buffer", "runner-claim", "runner-warm-up", "live-relay", "overlap", "arrival-order"],
  // One suite of each module.
  ...["relay-save", "relay-secret", "relay-template", "sender-domain", "mail-settings", "record", "collection", "longest-text"],
  ...[
    "access",
    "credit",
    "product",
    "purchase-receipt",
    "manual-refund",
    "manual-move",
    "similar-buyer",
    "person-merge",
    "selling-link",
    "selling-model",
    "people",
    "email-person",
  ],
  ...["action-access", "action-grant-credits", "action-plan-sale", "action-product-sale", "action-write-record"],
  ...["account", "session", "key", "command-key", "sync-source"],
];

const FLOWS: readonly string[] = [
  "alert-channel",
  "alert-channel-command",
  "receiver",
  "capture",
  "replay",
  "change-stream",
  "hold-at-once",
  "store-purchase",
  "app-delete",
  "rejected-delivery",
  "followed-receiver-import",
  "apply-key",
  "relay-case",
  "request-capture",
  "explain-draft",
  "sell-through",
  "validate-trigger",
  "second-factor",
  "passkey",
  "followed-receiver",
  "kit-lives",
  "kit-save",
  "kit-sync",
  "customer",
  "erasure-request",
  "customer-link",
  "permission",
  "confirm",
  "member",
  "invitation-mail",
  "hidden-payload",
  "second-person",
  "hidden-quote",
  "oidc",
  "environment-race",
];

/** These move a clock by hours or days, which costs a query for each timer, or repeat a scenario that a suite above covers. */
const LONG_RULES: readonly string[] = [
  ...[
    "schedule",
    "schedule-clock",
    "maintenance",
    "alert",
    "alert-channel",
    "unmailed-alerts",
    "test-request",
    "streak",
    "silence",
    "health-nodes",
    "action-time",
  ],
  ...["event-row", "event-state", "relay-view", "relay-list", "save-warning", "change-capture", "client-signin", "app-removal"],
  ...["runner-inline", "runner-crash", "runner-effect", "runner-order", "runner-release", "change-capture-model"],
];

const LONG_FLOWS: readonly string[] = [
  ...["recent-change", "newer-change"],
  ...["test-event", "fix-and-replay", "import-missed", "run-memory", "event-count", "event-waits", "events-expiring", "event-cause"],
  ...["schedule", "recent-call", "recent-call-overlap", "unknown-call", "purchase-story", "sale-order", "sale-without-person", "alert-burst"],
  ...[
    "person-timeline",
    "checklist",
    "person-filter",
    "manual-mail",
    "mail-stop",
    "standard-webhooks",
    "api-account",
    "api-body",
    "client-record",
    "odd-record",
  ],
  ...["relay-history", "funnel", "overview", "bulk-replay", "retry-now", "action-rule", "corrected-person", "hold-arrival"],
  ...[
    "arrival-lives",
    "plan-arrival",
    "sale-suspended",
    "receipts-move",
    "people-merge",
    "people-change-address",
    "sync",
    "read-all",
    "telemetry",
    "signing-overlap",
    "allowed-url",
  ],
  "connector-tasks",
  "hold-description",
  "problem-list",
  "simulate-command",
  "simulate-life",
  "skipped-run",
  "limit-usage",
  "backup-endpoint",
  "followed-receiver-path",
  "followed-receiver-unsigned",
];

const pathsOf = (rules: readonly string[], flows: readonly string[]): string[] => [
  ...rules.map((name) => `test/rule/${name}.test.ts`),
  ...flows.map((name) => `test/flow/${name}.test.ts`),
];

/** Suites that run on PostgreSQL only in the soak, or when the command names the database. */
export const LONG_POSTGRES_SUITES: readonly string[] = pathsOf(LONG_RULES, LONG_FLOWS);
export const POSTGRES_SUITES: readonly string[] = [...pathsOf(RULES, FLOWS), ...LONG_POSTGRES_SUITES];

/** Suites over a kit's store that do not run on PostgreSQL, with the reason. */
export const FILE_ALONE: readonly (readonly [why: string, suites: readonly string[]])[] = [
  ["It is about a database file: its bytes, its copies, its folder.", ["rule/retention-size", "rule/backup", "flow/backup", "flow/backup-copy"]],
  ["It opens PostgreSQL by itself.", ["rule/node-holding", "rule/node-share", "rule/master-key-nodes", "flow/two-nodes", "flow/move"]],
  [
    "It is about a command, the executable's package or the mail server.",
    [
      "rule/cli-account",
      "rule/packaging",
      "rule/mail-smtp",
      "flow/ready-command",
      "flow/capture-command",
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
  ["It is about calls that leave, over sockets.", ["rule/outbound-reuse", "flow/attack-crossing", "flow/explain-call", "flow/notice-verifier"]],
  [
    "It is about how a call is verified, or what is told of one that was not.",
    [
      "flow/guess",
      "flow/handshake",
      "flow/named-sender",
      "flow/provider-request",
      "flow/sender",
      "flow/rejection-cause",
      "flow/failure-notice",
      "flow/secret-overlap",
    ],
  ],
  [
    "It is about the words, the doors and the limits of HTTP: what its routes store, the suites of the rooms below store on both.",
    [
      ...["flow/api-dashboard", "flow/api-error", "flow/api-event", "flow/api-fuzz", "flow/api-gate", "flow/api-people", "flow/api-record"],
      ...["flow/api-relay", "flow/api-server", "flow/api-setting", "flow/api-signin", "flow/approval", "flow/login", "flow/alert"],
      ...[
        "flow/anywhere",
        "flow/client-api",
        "flow/client-fuzz",
        "flow/client-library",
        "flow/client-words",
        "flow/connector",
        "flow/first-request",
        "flow/connector-wire",
        "flow/list-filter",
      ],
      ...["flow/docs-example", "flow/docs-page", "flow/explain", "flow/metrics", "flow/public-folder", "rule/listening"],
    ],
  ],
];
