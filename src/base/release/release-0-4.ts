/** What release 0.4.0 changed. It is never edited. */
import type { Release } from "./release.ts";

export const RELEASE_0_4: Release = {
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
};
