/** What release 0.17.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_17: Release = {
  version: "0.17.0",
  changes: [
    {
      subject: "The order of plans",
      was: "A payment of a plan that was tried again, replayed or had waited took the person back from the plan paid for since, or began one again that was cancelled since; a cancellation that had waited ended what was paid for since.",
      now: "Plans go by the order in which the events arrived, whatever order they run in, and the event's result says so. What the provider itself delivers late still counts when it arrives.",
    },
    {
      subject: "relay move to SQLite",
      was: "Events that came along were there and ran, and no list told of them until their relay had new ones.",
      now: "They are listed and counted. The update mends a file they came into before.",
    },
    {
      subject: "What was held together",
      was: "When an environment was released, one relay's events ran after another's, so that an access whose end came later stayed.",
      now: "What some dozens of events of relays that only touch the database hold runs in the order of arrival. Of more, each relay's do, as before.",
    },
    {
      subject: "A data directory whose database is empty, or was copied without its log",
      was: "It was taken for a new one: the server began anew, without relays or keys.",
      now: "The start, the commands and relay doctor refuse it with a sentence.",
    },
    {
      subject: "A damaged runner.lock",
      was: "It was told as a damaged database, with the advice to restore a backup.",
      now: "It is made anew.",
    },
    {
      subject: "A person who buys the same again and again",
      was: "Each sale's run and audit listed all their grants, so that the file grew with the square of the sales.",
      now: "They tell the newest twenty, and whether there are more (moreGrants).",
    },
    {
      subject: "A person's attributes, a payment that was taken elsewhere, and the files that records hold",
      was: "The API alone set, recorded, kept and deleted them.",
      now: "So do buttons (Change… and Record a payment… on the person's page, Selling › Receipts, Records › Files) and commands (relay people set, receipts record, files list, upload, download, delete). What a payment gives is said before it is recorded, and the same ref again is the same receipt.",
    },
    {
      subject: "Files in the audit",
      was: null,
      now: "An owner's or a command's upload and deletion of a file stand there (file.uploaded, file.deleted), without its name.",
    },
    {
      subject: "Results and refusals that say what to do",
      was: "Some named no way: a suspended person, a plan that the card processor bills, a token filed for another, credits that are short, a key in use, a full environment.",
      now: "They name the command, and so the button. A plan that the card processor bills has to be ended here too, and says so.",
    },
    {
      subject: "A name that the map got after a truncated event had arrived",
      was: "The warning said that it names nothing in the event.",
      now: "It says that only what the map named at the arrival is kept.",
    },
    {
      subject: "Replay in the dashboard",
      was: "It stood before the way to what mends an event.",
      now: "It stands behind it, and is the primary button where the cause is over. A refused mail and a suspended person lead to the person, a URL that answers 404, 405 or 410 to the URL, one that answers 401 or 403 to the signing secret.",
    },
    {
      subject: "Whether a cause is over",
      was: "Home and an event said so of a mail refused for one person, or of data that one event lacks, because another event came through; an event's page said what Home did not.",
      now: "They do not, and both say the same.",
    },
    {
      subject: "A map that finds nothing, because the sender changed its payload",
      was: "The events were done, with a warning that only each of them told.",
      now: "The relay's funnel says how many of its newest events carry a warning, and what the last one says (relay relays funnel, GET …/relays/:name/funnel).",
    },
    {
      subject: "A relay that finds nobody",
      was: "Home told it without a way on.",
      now: "It leads to the map and to the newest such event (newest and cause in GET …/overview).",
    },
    {
      subject: "A paused or held relay",
      was: "It offered to show what waits, also where nothing did.",
      now: "It does only where something waits, and says how much.",
    },
    {
      subject: "Missed ticks",
      was: "Home urged to replay all of them.",
      now: "It says to replay those that are still wanted.",
    },
    {
      subject: "Long event types, commands and prices in the dashboard",
      was: "Types broke inside a word on a narrow screen, the command a link stands for could not be read by touch, and prices were written as the browser's language does beside counts in English.",
      now: "Types go on behind a dot or an underscore, the command stands under On the command line of alerts, problems and events, and prices are written as counts are. Times stay the reader's.",
    },
    {
      subject: "Bulk replays, approvals and imports in the dashboard",
      was: "After a bulk replay the link led to more than was asked for, an approval that was never carried out read as not approved, and causes of bad lines beyond the eighth could not be seen.",
      now: "It leads to what was asked for, the approval says so, and every cause is told.",
    },
    {
      subject: "Writing to PostgreSQL",
      was: "Each group of writes was flushed to the disk by a second connection.",
      now: "Where nobody waits to write, a small group's flush goes out with its commit: a node with few callers and several nodes together record more a second.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
