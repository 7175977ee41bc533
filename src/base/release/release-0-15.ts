/** What release 0.15.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_15: Release = {
  version: "0.15.0",
  changes: [
    {
      subject: "Called URLs and mail servers whose name servers are silent",
      was: "A dozen such names held every other call and mail for a quarter of a minute and more, and a stop ran over its limit.",
      now: "Nothing waits for them. Names are asked of the name servers, and of the system's other ways where these do not know them; a name without a dot or listed by --allow-private is asked of the system each time. A look-up that no name server answered is told as that, not as a misspelled name.",
    },
    {
      subject: "A PostgreSQL that was read only",
      was: "After default_transaction_read_only, or a name that led to a standby for a moment, nodes answered 503 until they were restarted.",
      now: "They connect anew and go on by themselves, and nothing is read from a standby for longer than its name leads there. A server that is started meanwhile waits as for a database that is away.",
    },
    {
      subject: "PostgreSQL as others have set it up",
      was: "standard_conforming_strings off, bytea_output escape, a role's transaction_timeout and a database name with a slash ended a start, a migration or a move; session_replication_role made a saved relay known to nobody.",
      now: "All are taken, or told with what to do; so are a user without a schema, another program's tables, too few connections and each way in which TLS fails. Where the server gives no more connections, reads share those there are; relay doctor reports with a small temp_file_limit too.",
    },
    {
      subject: "/metrics of several nodes",
      was: null,
      now: "relay_node_lock_wait_seconds, relay_node_connections and relay_node_waiting_reads tell of the lock of all nodes and of a node's connections.",
    },
    {
      subject: "Alerts by mail",
      was: "One environment's dripping mail server held the alerts of every other.",
      now: "It holds its own alone.",
    },
    {
      subject: "Erasing one of two people who share an address in two spellings of its domain",
      was: "The other's waiting events, stored texts and missed calls went too.",
      now: "What came under the address stays the other's, whom the page, relay people show and the API's namesake name. Erasing both leaves the address nowhere.",
    },
    {
      subject: "Schedules with much to catch up on",
      was: "A save, a sync or an approval that gave one another trigger recorded up to a month of missed ticks in its own transaction, and a plan did so and undid it.",
      now: "200 at a time before it, and none for a plan.",
    },
    {
      subject: "Sign-in codes that cannot be mailed, and sales that found nobody",
      was: "The first stood in the log alone, the second among failed events while their relay was well.",
      now: "Each is told under Needs you and by an alert (codes_unmailed, sale_nobody).",
    },
    {
      subject: "A refund of a purchase that no relay fulfilled",
      was: "It was tried seven times in 27 hours, and the owner heard a day late.",
      now: "It is dead at the first attempt (purchase_not_by_relay), and the owner is told at once.",
    },
    {
      subject: "What somebody has, by command",
      was: null,
      now: "relay people grant gives an access, relay people end ends a plan or an access, relay people credits adds and spends credits, once under a key, and relay people suspend and activate do what they say.",
    },
    {
      subject: "It is seen to",
      was: "It resolved the newest of the hourly alerts of a cause, so that the need stood on, and a hundred of them hid other causes.",
      now: "It holds for everything told of the same cause.",
    },
    {
      subject: "Replaying in the dashboard",
      was: "Nothing warned of a cause that still stands, and two buttons stood beside chosen events.",
      now: "A replay says that it would die again, or do nothing. An event says what is done all the same, and Done before in place of Skipped for the work of an earlier attempt.",
    },
    {
      subject: "The dashboard without its database",
      was: "It was called live while every answer was 503.",
      now: "It says so, and its palette says when it could not look.",
    },
    {
      subject: "What needs somebody",
      was: "The list went by kind, so that one dead refund stood above a checkout whose every mail fails.",
      now: "It goes by what goes wrong now and how much of it; approvals, what is over and a missing backup stand below. A relay in trouble and paused says both, with more than 200 relays all are found, and a person's page tells of what is not through yet.",
    },
    {
      subject: "Questions before something ends",
      was: "They named nobody, and a deleted relay's waiting events were not mentioned.",
      now: "They say whose it is and what goes with it. A new collection asks who reads its records, which was everybody who is signed in.",
    },
    {
      subject: "What is gone, and what waits",
      was: "A deleted relay or an erased person offered Try again, and a funnel said how many wait without the cause.",
      now: "It says that it is not here and leads back to its list. The funnel names the commonest cause and leads to what waits (waitsFor), and the list of mails says why one was not sent.",
    },
    {
      subject: "A button that is disabled while it sends",
      was: "The keyboard lost its place.",
      now: "It stays there.",
    },
    {
      subject: "A call_url that got no answer",
      was: "It was told by a library's error name.",
      now: "The result says what the server did. tls_failed names NODE_EXTRA_CA_CERTS.",
    },
    {
      subject: "Links to the documentation in refused commands",
      was: "They led to this machine's port 4747, whichever server the command was about.",
      now: "They lead to that server.",
    },
    {
      subject: "Commands in sentences",
      was: "Ten commands were not known as such, relay admin among them, and thirteen sentences lent a command their next words.",
      now: "Each is one piece, chosen whole in the dashboard and kept on one line in a terminal.",
    },
    {
      subject: "relay validate and relay dev",
      was: "A name that stands many times in a file was told as often, and a sign that nobody sees was shown as it is.",
      now: "Once, and by its code.",
    },
    {
      subject: "Filters by person",
      was: "An unknown id gave an empty list of mails, receipts, subscriptions or records.",
      now: "It is refused as an unknown address is; an erased person's id still lists.",
    },
    {
      subject: "Beginning with Paddle",
      was: "A purchase without a subscription left a warning each time.",
      now: "It leaves none.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
