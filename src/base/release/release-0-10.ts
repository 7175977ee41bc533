/** What release 0.10.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_10: Release = {
  version: "0.10.0",
  changes: [
    {
      subject: "Several nodes on PostgreSQL: what another node said",
      was: "A relay that was paused, changed or deleted at one node could run as it had been at the node that ran its environment, for as long as that one had not heard of it.",
      now: "Whoever runs an event asks for its relay in the same transaction: a pause, a change and a deletion hold at once, everywhere.",
    },
    {
      subject: "A PostgreSQL that goes away in the middle of a commit",
      was: "An event that was being taken then could stand as running for good; after a crash or a failover of the server a write that was lost could be acknowledged, when another transaction had got its number; the first reads after a restart of the server failed.",
      now: "What came of a commit is asked by a number that the service leaves with it, and an event that may have been taken is looked after. Reads go on with new connections at once.",
    },
    {
      subject: "Slow disks under PostgreSQL",
      was: "All nodes waited while one commit was written to the disk.",
      now: "The next one runs meanwhile, and nobody is answered before the disk has it. Where the disk takes three milliseconds longer than a quick one, three nodes record and finish one and a half times as many events and more.",
    },
    {
      subject: "Many events in PostgreSQL",
      was: "Lists, counts and the list of relays read every event there is where a relay or an environment had been quiet lately, for half a minute beside a million; retention held every writer up for a second and more at a time.",
      now: "They read some thousands of rows at most, and retention holds writers up for less.",
    },
    {
      subject: "Stopping a node",
      was: "A balancer that had not looked yet answered some calls with 502. A server whose database said nothing any more did not end.",
      now: "A node of several says on /readyz that it ends and takes calls for four seconds more. A server ends within 18 seconds of that, whatever its database does.",
    },
    {
      subject: "Starting on PostgreSQL",
      was: "A standby, a database that cannot hold every text and a user without rights failed with words of their own or of a fault of ours; of the set-up links that several nodes print only the newest worked; links and receiver URLs could name 0.0.0.0.",
      now: "A start, a command and relay doctor say of each way in which PostgreSQL refuses what to do about it, before anything is made there. Every set-up link works until there is an owner. Where every address is listened on and no base URL is given, links name 127.0.0.1.",
    },
    {
      subject: "relay doctor on PostgreSQL",
      was: "It told its own connection's time zone and durability as the server's, and left a pooler's connection read-only.",
      now: "It tells the server's own, and sets nothing.",
    },
    {
      subject: "The first call to your URL after a start",
      was: "It waited 10 ms behind the answer for code that had not run yet.",
      now: "About half of that.",
    },
    {
      subject: "An open dashboard page",
      was: "It kept itself up to date with up to 7 % of the service's thread beside a thousand events a second.",
      now: "About a thirtieth of the thread at most, and it asks for relays that it only names when one of them changes.",
    },
    {
      subject: "Smaller things",
      was: null,
      now: "relay version says the version. A second relay init says nothing of editor settings that are right already. Searches in the dashboard are wide enough for their words, and no axis of time is drawn where nothing happened. A database of 0.8.0 on PostgreSQL gets the quicker triggers. The documentation's pictures are of today.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
