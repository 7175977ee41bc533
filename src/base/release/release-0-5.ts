/** What release 0.5.0 changed. It is never edited. */
import type { Release } from "./release.ts";

export const RELEASE_0_5: Release = {
  version: "0.5.0",
  changes: [
    {
      subject: "From development to production",
      was: "Production was changed in its dashboard alone.",
      now: "relay sync --live carries the files, and relay promote what stands in development, into production once an owner approved exactly that plan in the browser: once, within 10 minutes. The dashboard promotes too (Promote to production… on development's Relays page). --dry-run, --yes, --open, --json; exit codes 3 refused by an owner, 4 not approved in time, 5 void. POST {E}/sync/plan takes to: production and from: development; {E}/approvals and /api/approvals/{id}; sync/apply to production answers 403 approval_needed. One approval carries up to 300 changes; payment links and a default plan that move into production are warned of.",
    },
    {
      subject: "From the dashboard back to the files",
      was: null,
      now: "relay pull brings what was edited in a server's dashboard back to the definition files and catalog.json: the plan first, a three-way view of what changed on both sides (--theirs, --ours, --prune). relay status says what differs between files, development and production. Both exit with 3 where something is left.",
    },
    {
      subject: "Saving in local development",
      was: "The file kept the text it had, and the next change of it won.",
      now: "What is saved in the dashboard, by API, connector or command is written to its file; a delete takes the file away. What cannot be written is the warning file_not_written and the problem file_behind.",
    },
    {
      subject: "Files that are away for a moment",
      was: "A relay went with its file after two looks.",
      now: "It goes after ten seconds; a whole folder that is away (git switch, stash, mv) takes nothing along and is the problem folder_away.",
    },
    {
      subject: "Signing in from the command line",
      was: "A secret key in RELAY_KEY.",
      now: "relay login --url https://… signs you in through the dashboard: type the code it shows at /login and choose the environment. The key is yours, ends after 90 days (--days) and stands on the Keys page; a new password ends it too. relay whoami, relay logout; DELETE /api/key; keys have owner and expiresAt. Its changes have the actor owner:<email> by key:<id>.",
    },
    {
      subject: "Commands at a server",
      was: "Most worked on the data directory alone.",
      now: "Every command that reads or changes an environment works against a server with --profile, or with RELAY_URL and RELAY_KEY, which win over the data directory here; --data-dir wins over them. A change in production is said, and its profile has to be named. Plain http to another machine is refused to all of them, relay mcp included.",
    },
    {
      subject: "Replaying many events at once",
      was: "Each was replayed by itself.",
      now: "relay replays start --relay <name> (--plan shows what it would do), relay replays list|stop and POST {E}/bulk-replays replay every dead or failed event that a filter chooses, oldest first and no faster than asked. It is a job of the server that goes on over restarts, and takes each once.",
    },
    {
      subject: "Events that a provider never delivered",
      was: null,
      now: "relay import-missed <name> < export.jsonl (also at a server, and on the relay's page) enters what the provider lists, each once: the plan first, deduplicated against what was received, unsigned unless the delivery verifies, safe to run again. Events that were imported or sent as a test say so: cameBy.",
    },
    {
      subject: "Test events",
      was: "relay send alone.",
      now: "POST {E}/relays/{name}/test-event, the connector's tool send_test_event and a button on the relay's page send one, signed and marked; production refuses it.",
    },
    {
      subject: "The dashboard opens on what needs you",
      was: "It opened on the relays of the environment that was looked at last.",
      now: "Home says what is wrong, since when, why, whether that is still so, and has the button that replays or releases; then the last 24 hours by the hour and relays by trouble. Signing in opens the environment that needs somebody most; each in trouble is marked, and the tab's title carries the count. GET {E}/overview and GET /api/overview say the same.",
    },
    {
      subject: "Events say what happened",
      was: "A row had state, relay, person and id.",
      now: "It has the event's type and first mapped values too, and on a second line why one failed: eventType and preview in the API, relay events list and tail. The states above carry counts (GET {E}/events/counts), and Replay these… replays what the filter chooses.",
    },
    {
      subject: "Calls in the dashboard",
      was: "One relay's page showed its last ones.",
      now: "They have a room of their own: what became of each and why, unknown names, and the accepted ones as they arrive.",
    },
    {
      subject: "Equal calls",
      was: "One row a call.",
      now: "Refused and ignored calls that are alike, from one network and one after the other, are one row with count and firstAt; the list goes by the last one's time.",
    },
    {
      subject: "Every code is explained",
      was: "relay help knew refusals, results and warnings.",
      now: "relay help and /docs/errors explain the codes of problems, alerts, calls and mails too; problems and alerts have docs in the API, and the dashboard links there.",
    },
    {
      subject: "Lines of the log",
      was: "What a relay's when ignored was a warning a minute; an unnamed proxy a line more for each environment.",
      now: "What is ignored is one line an hour, information where the relay acts on other calls; an unnamed proxy is one line.",
    },
    {
      subject: "Words of the command line",
      was: "relay catalog list and relay settings get showed JSON.",
      now: "They say what is granted, sold and held, and on, off or none as they are set; the hold is called held.",
    },
    {
      subject: "Deleting a relay",
      was: "It answered 204.",
      now: "It answers 200 with warnings, as every other delete of a definition does.",
    },
    {
      subject: "The connector's switch",
      was: "API and relay settings alone.",
      now: "Also in the dashboard, among the keys.",
    },
    {
      subject: "Coming back in the dashboard",
      was: "A list began anew.",
      now: "Back, the crumb and Escape return to the filter and the place that were left, and what several parts of a page show is asked for once.",
    },
    {
      subject: "Faster calls and runs",
      was: null,
      now: "Calls that wait together are stored as one work, the runs of a batch end together, and a relay's failed and dead events are found in one index.",
    },
  ],
  codesAdded: [
    "access_denied",
    "approval_capped",
    "approval_denied",
    "approval_expired",
    "approval_needed",
    "approval_pending",
    "approval_used",
    "approval_void",
    "authorization_pending",
    "event_id_missing",
    "event_too_old",
    "expired_token",
    "login_capped",
    "login_used",
    "not_confirmed",
    "replay_running",
    "slow_down",
  ],
  codesRemoved: [],
};
