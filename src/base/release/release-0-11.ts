/** What release 0.11.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_11: Release = {
  version: "0.11.0",
  changes: [
    {
      subject: "A node that is started before its PostgreSQL",
      was: "It ended at once, and after a reboot that brings the database up last nobody started it again.",
      now: "It waits, says why in its log and on /readyz, and answers 503 meanwhile. A wrong password, database, encoding or master key ends it still.",
    },
    {
      subject: "A PostgreSQL that dies without a word",
      was: "Callers waited 36 seconds for its answers, and /readyz hung for as long.",
      now: "It is noticed in about a quarter of a minute; statements that take their time, and waits for locks, are not taken for that. /readyz answers within three seconds whatever the database does. A server that is told to end meanwhile ends in order.",
    },
    {
      subject: "A full disk under PostgreSQL",
      was: "/readyz said ready while every event was refused.",
      now: "It says not ready, and why, until there is room again.",
    },
    {
      subject: "relay doctor on several nodes",
      was: null,
      now: "It says which of the nodes that serve have another base URL or another clock than the others.",
    },
    {
      subject: "Erasing a person, and bulk replays, on PostgreSQL",
      was: "Each step waited for every event's answers one after another, and others' writes with it.",
      now: "What a step asks travels together. Where the database is a millisecond away, another's write waits about 45 instead of 700 ms during an erasure, and a replay of 200 a second comes to 181 instead of 50.",
    },
    {
      subject: "Several nodes under steady load",
      was: "What had waited once, after a start or a lease that moved, kept all events of an environment on the longer road for as long as the load lasted.",
      now: "What waits is run off in one go: a third to a half more events a second in such a time.",
    },
    {
      subject: "Smaller things on PostgreSQL",
      was: null,
      now: "A record whose text begins like a file's id is kept like any other: a long one was refused with 500. A call whose signature is accepted once and that comes again is answered as a duplicate only once the first one is on the disk. A quiet environment's chart, and people by access, go by their own rows, however many others there are.",
    },
    {
      subject: "Sync and promote: relays whose files stay as they are",
      was: "Nobody looked at them when the catalog beside them changed, and events of what it broke ended dead.",
      now: "The plan, the approval and the problems tell what the catalog breaks of them, of 25 at most, and say how many more there are; a problem ends once what was missing is brought.",
    },
    {
      subject: "What goes and is still named",
      was: "It went without a word.",
      now: "Deleting or pruning a relay tells what was sold through it; deleting an access slug, product or plan tells whose product's key it is; receipts that are mapped to a collection that is not there are warned of, also by PUT settings, which answers warnings.",
    },
    {
      subject: "A hold that ends while the service is down",
      was: "Its periods were told as missed, and the newest one ran.",
      now: "Schedules count from the release, and a relay's page says so.",
    },
    {
      subject: "Explain and the Test tab",
      was: "A stored form was read as JSON, and a call whose signature counts once and was used was told to run.",
      now: "Both say what the receiver does.",
    },
    {
      subject: "Times in the API and on the command line",
      was: "A day that no calendar has moved on: 30 February was 2 March. A time without a zone was the machine's own.",
      now: "Both are refused. A date alone is its first moment in UTC.",
    },
    {
      subject: "Smaller things",
      was: null,
      now: "A relay's own edit in local development is no longer told as broken by the catalog. A plan of import-missed says what the import does where signatures count once. relay send says of a repeat whether the id or the body told it. Ingestion beside ten million stored events costs a tenth less.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
