/** What release 0.16.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_16: Release = {
  version: "0.16.0",
  changes: [
    {
      subject: "A server that starts while its clock is far ahead",
      was: "What was older than thirty days by that clock went a minute later, and with it the memory of what was received, so that a provider's repeat ran again.",
      now: "Nothing is cleaned up for an hour after a start where the newest event of more than an hour ago is a day old or more.",
    },
    {
      subject: "After a clock that stood ahead was set back",
      was: "An alert that was told then swallowed each of its kind until that time, and mails of then filled a person's day and an app's hour.",
      now: "They stand in nobody's way.",
    },
    {
      subject: "Erasing a person where the clock stands behind what is stored",
      was: "Refs, runs and texts of theirs stayed, though the erasure was said to be over.",
      now: "They go.",
    },
    {
      subject: "A card payment of somebody who is suspended (POST receipts)",
      was: "It was refused with 403 person_suspended, although the money was taken.",
      now: "It is recorded and given, they may use it once they are active, and the owner is told (sale_suspended).",
    },
    {
      subject: "Deleting a relay by the API",
      was: "It answered 200 with an empty list of warnings.",
      now: "It answers 204 without a body, or 200 with the warnings where there are some.",
    },
    {
      subject: "Filters of lists",
      was: "A relay, entitlement, action or code that never was gave an empty list, and so did an empty text.",
      now: "It is refused (invalid_input), mostly with what was probably meant. A deleted relay stays known. limit takes digits alone.",
    },
    {
      subject: "Events by what they failed with",
      was: null,
      now: "reason=<code> in the lists of events, their counts and bars and in bulk replays (relay events list --reason, relay replays start --reason, reason: in the search); any: whatever it was.",
    },
    {
      subject: "A called URL that sends 100 Continue before its answer",
      was: "It did its work, and each call failed, seven times.",
      now: "The status is passed over.",
    },
    {
      subject: "A called URL that sends statuses that go on without end (103)",
      was: "It held the whole server up for the ten seconds that a call may last.",
      now: "The call ends at the hundredth.",
    },
    {
      subject: "Alerts of many events that die or wait together",
      was: "Each raised the alert whole while every other write waited.",
      now: "Once a relay, with their number and the last of them.",
    },
    {
      subject: "sale_nobody",
      was: "Where 10,000 failed events were kept it never ended by itself.",
      now: "It does with up to 250,000.",
    },
    {
      subject: "Several nodes on PostgreSQL, where a renewal of a lease was late",
      was: "What came meanwhile waited up to five seconds more.",
      now: "It is looked for as soon as the lease is renewed.",
    },
    {
      subject: "People by command",
      was: null,
      now: "relay people invite, file-token, remove-token, stop-mail and allow-mail, and relay emails stopped, do what the person's page does; relay people show tells of tokens and stopped mail. Every people command takes an id's ending.",
    },
    {
      subject: "Records and receipts by command",
      was: null,
      now: "relay records list, show, set and delete; relay receipts list, and refund, which takes back what a payment gave and moves no money.",
    },
    {
      subject: "relay relays delete, relay domain remove, relay apps rename",
      was: null,
      now: "The first two say what goes and ask, or take --confirm. relay domain set takes --event-word and --account-word.",
    },
    {
      subject: "Erasing by command",
      was: "relay people erase was an unknown command.",
      now: "It says that erasing is done on the person's page in the dashboard, and why.",
    },
    {
      subject: "relay relays funnel",
      was: "It said how many wait, without the cause.",
      now: "It says what those that wait for their next attempt failed with, and the command that lists them.",
    },
    {
      subject: "Where a relay came from",
      was: 'One that was promoted read "from file".',
      now: "It says from which environment it was promoted and when (promotedFrom). Relays promoted before say so with the next promote that changes them.",
    },
    {
      subject: "Sentences of the dashboard that named a command",
      was: "They told what to type, where a button stood on the same page.",
      now: 'They name the button, or lead to the page that does it; the command stands under "On the command line". Mails and the command line keep it.',
    },
    {
      subject: "A relay whose every attempt fails",
      was: "Nothing led from its page to what mends it.",
      now: "Its page and Home lead to what mends it and to its newest event, and an alert's mail to the relay's page.",
    },
    {
      subject: "Forced colours, paper, letters from right to left, telephones",
      was: "Nothing chosen was marked, a printed event lacked its folded attempts, and an address of such letters read from its end.",
      now: "What is chosen is marked, attempts are printed whole with exact times, addresses keep their order, and a record's event and the audit's differences fit a narrow screen.",
    },
    {
      subject: "What is gone",
      was: "An approval, or a person opened by name, that is gone offered Try again.",
      now: "It says that it is not here, and leads back.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
