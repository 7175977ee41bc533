/** The two releases before the newest one, newest first. They are never edited. */
import { EARLIER } from "./earlier.ts";
import type { Release } from "./release.ts";

export const RECENT: readonly Release[] = [
  {
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
  },
  {
    version: "0.4.0",
    changes: [
      {
        subject: "Calls that became no event are told",
        was: "Only the API and the dashboard's data held them.",
        now: "relay calls list|show|tail shows them with their cause. relay dev prints a line for each, relay serve a warning a minute for each relay and cause; GET {E}/calls takes since=. A relay's page shows its last calls.",
      },
      {
        subject: "Calls to a name that no receiver has",
        was: "They left no trace.",
        now: "They are kept, 50 names an environment, with the name the sender probably meant: relay calls list, GET {E}/unknown-calls, the log and the terminal.",
      },
      {
        subject: "Why a signature did not verify",
        was: "The call's cause said that it did not.",
        now: 'The cause names the difference that was found, such as "it verifies with signedPayload `{body}`", the encoding, the other environment\'s secret or the other form of the receiver URL; how far a clock is off; and until when calls verified.',
      },
      {
        subject: "Trying without an effect",
        was: null,
        now: "relay send <name> --explain and POST {E}/relays/{name}/explain show step by step what a relay would do, and do nothing. In local development relay send runs one marked tick of a schedule, or writes a marked record that a relay watches.",
      },
      {
        subject: "Failed runs in the terminal",
        was: "relay dev printed the run's line alone.",
        now: "An indented line below it says why, when it is tried again and the command that shows the event; what ran with warnings says so too.",
      },
      {
        subject: "Events that wait",
        was: "Their state was queued.",
        now: "waits says for what: a hold, a pause, a retry, or how many events are before it (GET {E}/events, relay events list|show). A schedule relay has nextTick.",
      },
      {
        subject: "Events about to be dropped",
        was: "They were dropped after 30 days in a pause or a hold, and that was told.",
        now: "The owner is told three days before: problem and alert events_expiring.",
      },
      {
        subject: "What comes to nothing",
        was: "A relay that refused every call, or was silent, was told.",
        now: "Told too: every call ignored by when, events that find nobody, every attempt failing for half an hour, good events over the cap, a new receiver that nobody calls for a day. Alerts relay_ignoring, relay_nobody, relay_failing, relay_capped, relay_uncalled, each with its switch.",
      },
      {
        subject: "Alerts end",
        was: "They stood for good.",
        now: "They resolve by themselves when their cause is over, or by hand: relay alerts list|resolve, POST {E}/alerts/{id}/resolve, the Attention page; ?open=true leaves the resolved ones out. relay problems list shows what stands. An alert of dead events names the newest and says how many more died.",
      },
      {
        subject: "A proxy that was not named",
        was: "The log said so once.",
        now: "It is a problem with its address and the flag to set; relay doctor knows it, and warns of a server without any backup.",
      },
      {
        subject: "Warnings of a save",
        was: "Sentences in a list.",
        now: "Objects with code, field and message, in every answer and in relay validate --json; relay help <code> explains each.",
      },
      {
        subject: "Warnings of what can never happen",
        was: null,
        now: "A save warns of a watched collection that is not there, of a where that no record matches, of a template on a field the collection lacks, and of a relay that writes what another one watches.",
      },
      {
        subject: "Changes of the catalog",
        was: "What they broke was told by the next event.",
        now: "The answer says which relays a change breaks, and each of them has the problem relay_misfit until it is mended. Deleting a collection, product, plan or access slug answers 200 with warnings (it was 204).",
      },
      {
        subject: "relay validate",
        was: "It judged each file by itself.",
        now: "Definitions and catalog.json are judged as one whole; each warning has its line and code, they are counted, and --strict fails on them.",
      },
      {
        subject: "Commands for what only the dashboard or the API did",
        was: null,
        now: "relay settings get|set (secrets on standard input), relay catalog list|set|delete, relay people list|show, relay domain show|set|verify. relay events list --person takes an address, and somebody unknown is an error.",
      },
      {
        subject: "The schema of catalog.json",
        was: null,
        now: "relay init writes catalog.schema.json and binds it in the editor; relay schema catalog and GET /docs/catalog show it.",
      },
      {
        subject: "Warnings of an event",
        was: null,
        now: "An event whose mapped event_id names nothing carries a warning; a duplicate whose body was another says so, and an ignored call says when when met an object, a list or null.",
      },
      {
        subject: "Ids of events",
        was: "evt_ and a UUIDv7.",
        now: "evt_ and a UUIDv8 of time and number, in the same form. Ids given by earlier versions go on being found. The first start moves the stored events to their new table, after the copy, in small steps: about a minute for a million.",
      },
      {
        subject: "Pages of events that find little",
        was: "A page looked at up to 40,000 rows.",
        now: "It looks at 5,000, and may be short or empty and still have a next one; relay events list walks on by itself.",
      },
      {
        subject: "Saves beside many relays",
        was: "Each save, pause and rotation opened every relay anew, and held what arrived meanwhile.",
        now: "Only those that changed are opened.",
      },
      {
        subject: "Carrying files to a server",
        was: null,
        now: "relay sync brings service/relays/*.json and catalog.json to the development environment of a server: the plan first, then exactly that in one transaction (--dry-run, --json, --prune, --yes; RELAY_URL and RELAY_KEY). POST {E}/sync/plan and {E}/sync/apply do the same.",
      },
      {
        subject: "The connector for editors and assistants",
        was: null,
        now: "relay mcp (standard input and output) and POST {E}/mcp (streamable HTTP, a secret key) offer the API as tools of the Model Context Protocol. Those that change anything are marked, and switched off by --read-only, ?readOnly=true or the setting connector.writes.",
      },
      {
        subject: "Relays on the command line",
        was: null,
        now: "relay relays list|show|pause|resume|rotate-secret|set-secret: how each stands, why nothing happens, its last calls; a new secret is written to standard output once.",
      },
      {
        subject: "A person's events",
        was: "person= took an id, and somebody unknown was an empty list.",
        now: "It takes an address as well, and refuses somebody unknown with not_found.",
      },
      {
        subject: "Secrets set beside a server whose key is in its environment",
        was: "A command in a shell without RELAY_MASTER_KEY made a key of its own and stored what the server could not open.",
        now: "It is refused, and names the variable.",
      },
      {
        subject: "Starts with a large database to migrate",
        was: "Callers found no port until it was done.",
        now: "The port answers 503 and says how far it is. Starts killed during the copy no longer leave parts of it behind.",
      },
      {
        subject: "Which environment a key belongs to",
        was: null,
        now: "GET /api/key says it.",
      },
    ],
    codesAdded: ["sync_capped"],
    codesRemoved: [],
  },
  ...EARLIER,
];
