/** What release 0.18.0 changes. The release itself puts it into change.ts. */
import type { Release } from "./release.ts";

export const RELEASE_0_18: Release = {
  version: "0.18.0",
  changes: [
    {
      subject: "A server that crashes again and again",
      was: "Seven crashes within seconds used up all attempts of the events that were running, so they were dead.",
      now: "An event runs again at once after its first cut-off. After each further one it waits as after a failed attempt of that number.",
    },
    {
      subject: "relay settings set held on, relay relays pause",
      was: "On the server's data directory they ended before the server held, and events of up to a second later still ran.",
      now: "No event starts once the command has ended, on any node. What runs at that moment ends.",
    },
    {
      subject: "A database of 0.16.0",
      was: "Release 0.17.0 did not start with such a database, and the error blamed the disk.",
      now: "The server starts with it. The upgrade from each release since 0.9.0 is tested on both databases, with every action afterwards.",
    },
    {
      subject: "A database whose tables are not those of its version",
      was: "The server answered ready and relay doctor found it whole, and then each action failed that needed the missing column.",
      now: "A start and every command refuse it before anything is changed, and say what differs. relay doctor compares its tables, columns, indexes and triggers.",
    },
    {
      subject: "An upgrade that is interrupted",
      was: "Each further try kept one more full copy of the database.",
      now: "One copy is kept for each version: backups/before-migration-to-<schema>.db.",
    },
    {
      subject: "Home after an erasure",
      was: "Home answered with an error while the newest dead event of a relay was expunged, or its person erased.",
      now: "Home shows the dead event, and says that it never runs again.",
    },
    {
      subject: "Two products sold through one payment provider",
      was: "The guide, the template Paid checkout and Stripe's preset matched every paid checkout, so a buyer of one product got each of them.",
      now: "The guide, the template and Stripe's preset map and match the product in the metadata of the payment. A save warns when two relays sell different things and one payment may match both (sales_overlap).",
    },
    {
      subject: "Orders that cost nothing",
      was: "A checkout with a discount of 100 % gave the buyer nothing.",
      now: "The template Free checkout, the guide and Stripe's preset count no_payment_required as paid, with the session's id as the ref.",
    },
    {
      subject: "Where a buyer pays for what a relay sells",
      was: null,
      now: "soldThrough of a product or plan takes a url next to the relay, in the dashboard, the API and catalog.json. The 409 of g.payments.buy and g.subscriptions.checkout carries this url.",
    },
    {
      subject: "People whose address contains a plus",
      was: "GET …/persons?email=ada+1@example.com and the other filters found no one.",
      now: "A space in an address is read as the plus that was sent.",
    },
    {
      subject: "Access by address",
      was: "A server first had to look up the person's id.",
      now: "GET …/persons/access/{entitlement}?email=ada@example.com answers in one call.",
    },
    {
      subject: "Whose session a page's token is",
      was: null,
      now: "A page sends the token that g.auth.token() gives to your server, and POST …/sessions/verify tells your server the person.",
    },
    {
      subject: "Templates of a record as it was before a change",
      was: "A save warned that {{previous.data.status}} renders empty, although it rendered the value.",
      now: "The save takes it, checks its field, and the editor completes it.",
    },
    {
      subject: "Access after a hold, a pause, a retry or a replay",
      was: "A cancellation that ran before its payment ended nothing, so the buyer kept access. A late cancellation ended what the buyer had paid for again.",
      now: "Access follows the order in which the events arrived, as plans do. Each result names the event that decided.",
    },
    {
      subject: "Two subscriptions to one plan",
      was: "A person lost the plan when one of two subscriptions to it ended, and a cancellation that waited could end a plan that was paid for.",
      now: "revoke_plan under the ref of a payment ends the plan only if no payment of it under another ref arrived after that one, and its result names the ref that keeps the plan. A ref that is no payment of the plan always ends it, also when it was used before.",
    },
    {
      subject: "grant_plan without a ref on the plan that a person has",
      was: "Each such event counted as a purchase.",
      now: "Such a grant is a confirmation: receipts and the person's timeline leave it out, and relay receipts list --kind confirmation lists it (GET …/purchases?kind=confirmation).",
    },
    {
      subject: "https URLs that name a loopback address",
      was: "https://127.0.0.1/, https://[::1]/ and numbers that stand for them were saved with a warning, and their events died.",
      now: "The save refuses them as any other address. Plain http to 127.0.0.1 and [::1] still works in local development.",
    },
    {
      subject: "A tab or a line break in a pasted secret",
      was: "The refusal called it a character that is not plain ASCII.",
      now: "The refusal names the character.",
    },
    {
      subject: "/readyz on a full disk",
      was: "The answer was often ready while every request was refused, because a small write still succeeded.",
      now: "The answer is 503 until the disk has room and a write has succeeded after that.",
    },
    {
      subject: "The size of a request's body",
      was: "Every route of the API took 1 MB, whatever its fields could hold.",
      now: "A route takes what its fields can hold, such as 15 KB to sign in, and answers body_too_large above that. A number of more than 1,000 digits is invalid_json, at receivers too.",
    },
    {
      subject: "The problems of an answer",
      was: "A definition listed up to 51 problems, a sync up to 200, a catalog all of them.",
      now: "An answer lists at most 20 problems. Of more, the last one says that there are more.",
    },
    {
      subject: "A caller who keeps the others waiting",
      was: "10,000 requests sent together on one connection, 60 large bodies or a connector call with thousands of unknown arguments delayed other requests by seconds.",
      now: "One connection is answered 32 requests at a time and then closed, large bodies are read one at a time with others in between, and unknown arguments are refused before any work on them.",
    },
    {
      subject: "A secret that was pasted as a receiver's name",
      was: "The name of a call to no receiver was stored, listed and logged whatever it was.",
      now: "Of a name that cannot be a relay's, or that looks like a secret, only the length and the fingerprint are stored and shown. The fingerprint is that of the same secret at a relay.",
    },
    {
      subject: "Sign-in codes of an app that one network asks for",
      was: "58 requests from one IPv6 /48 kept every new person from signing up for up to an hour.",
      now: "An IPv4 /24 or IPv6 /48 gets one more of the hour's codes only while it leaves as many to others. An alert codes_capped says when one network used its part.",
    },
    {
      subject: "Strangers who guess at an owner's password",
      was: "After a restart, ten guesses kept the owner out for a quarter of an hour, except in a browser that had signed in before.",
      now: "The networks that an owner signed in from stay known, as digests under the master key: the 20 used last, for 400 days. There the owner has attempts that strangers cannot use up.",
    },
    {
      subject: "Logins of the command line that strangers begin",
      was: "1,100 of them pushed out a login that waited for its owner.",
      now: "No stranger pushes out the only login of a network. One IPv4 /24 or IPv6 /32 has 250 that wait at most, and where 1,000 networks have one each, a further login is refused.",
    },
    {
      subject: "verify.handshake zoom with a recipe that signs the bare body",
      was: "The answer to Zoom's question held the signature of a text that the caller chose, which then verified as an event.",
      now: "A save refuses handshake zoom unless signedPayload holds a dot, a colon or {url}, as Zoom's own does. A relay that an earlier version stored so does not answer the question.",
    },
    {
      subject: "service/relays and service/public that are links",
      was: "A link out of the service directory was followed: files elsewhere were read, served and written.",
      now: "Relay refuses a link that leads outside, with a sentence. A link to another folder within the service directory works.",
    },
    {
      subject: "relay pull",
      was: "relay pull wrote everything that the server sent.",
      now: "A definition or an item of the catalog that no save would take is never written. The plan says why.",
    },
    {
      subject: "Commands against a server that is not Relay",
      was: "An answer that a command could not read ended it with a sentence such as undefined is not an object.",
      now: "The command says what the answer lacks, and to check the address and the versions.",
    },
    {
      subject: "relay admin reset",
      was: "Keys that were made in the dashboard and other owners stayed valid, and nothing said so.",
      now: "The command names them. --end-keys and --end-owners end them.",
    },
    {
      subject: "Differences on the approval page, on Promote's card and between versions",
      was: "A long value was one line of any width, in which the change was far out of sight.",
      now: "Values wrap, the part that differs is marked and in sight, and a long part that stays is counted. Letters that imitate Latin ones, blanks that are no space and hidden characters are shown as escapes.",
    },
    {
      subject: "A PostgreSQL that ends a connection because of its disk, its memory or an error of its own",
      was: "The node refused every write until it was restarted.",
      now: "The node drops the connection and writes over a new one. A full disk of the server is always 503.",
    },
    {
      subject: "A refund under the ref of another product's payment",
      was: "The event of a second refund relay died with ref_used.",
      now: "If the payment is the same person's, the action is skipped with other_product. If it is another person's, the message of ref_used says so, and where to take the purchase back by hand.",
    },
    {
      subject: "Refunds by hand",
      was: "Only a product that your server had recorded could be taken back by hand, and the command did not say how much.",
      now: "Refund… in the dashboard, relay receipts refund and POST …/purchases/{id}/refund take back any purchase: of a product or a plan, recorded or fulfilled by a relay. They first say what is taken back.",
    },
    {
      subject: "Amounts on the receipts of relays",
      was: "The receipt of a relay's sale had no amount.",
      now: "If the relay maps amount and currency, the receipt keeps both, and the dashboard and relay receipts list show them.",
    },
    {
      subject: "A node that is cut off from its PostgreSQL",
      was: "Senders waited 18 to 19 s for the 503, longer than GitHub or Slack wait.",
      now: "The node answers 503 within five seconds. It still waits for a slow statement.",
    },
    {
      subject: "PostgreSQL behind PgBouncer",
      was: "ignore_startup_parameters dropped the limits of a node's sessions silently, so one node that hung stopped all others.",
      now: "A node sets the limits by statements and reads them back, and uses no session that does not keep them. Session mode needs no ignore_startup_parameters. relay doctor checks it (limits).",
    },
    {
      subject: "sslrootcert=system",
      was: "A node read a file of that name.",
      now: "The word system means this machine's root certificates, as psql and pg_dump have it from version 16 on. The documentation's URL works with its pg_dump line.",
    },
    {
      subject: "relay doctor on PostgreSQL",
      was: null,
      now: "The command says how full the server's queue of notifications is: a full one refuses each write.",
    },
    {
      subject: "Nodes that start at once on an empty PostgreSQL database",
      was: "A node that waited for another's schema could try to make it again and end with function now_ms already exists.",
      now: "The node that waited sees the schema that the other one made.",
    },
    {
      subject: "A lock on the leases while a node starts",
      was: "The node said nothing for up to 45 s, and then not what to do.",
      now: "The log says after five seconds that the start takes its time and how to find who holds the lock.",
    },
    {
      subject: "The release of a hold",
      was: "What waited ran in the order of arrival only as far as a few dozen events. A cancellation could run before the payment that it canceled.",
      now: "Everything that waited runs in the order in which it arrived, over all relays of the environment, however many events wait. A paused relay, a retry or a receiver that hangs does not stop the others.",
    },
    {
      subject: "A replay after the path of the person was corrected",
      was: "The replay said done and gave the buyer nothing. What was paid stayed with the first person.",
      now: "The plan and each skipped result name both people (other_person). If you choose the action, it runs for the new person, and a purchase or a plan's payment moves: it is taken back from the first person under its ref and made for the new one, in one transaction. A bulk replay counts such events and offers this for all of them: in the dashboard, with relay replays start --move, and with move of POST …/bulk-replays. With the state done it takes only those.",
    },
    {
      subject: "Limits on several nodes",
      was: "Each node had an even part of a limit. It said that the whole limit was reached, and from the sixth node on it had no place of a limit of five.",
      now: "Nodes draw the places of a limit from the database: one by one for sign-ins, codes, logins and what people write, in blocks for events. A node that gets all requests has nearly the whole limit, all together never have more, and the sentence is true.",
    },
  ],
  codesAdded: ["other_person", "other_product", "same_person"],
  codesRemoved: [],
};
