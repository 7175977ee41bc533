/** What release 0.9.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_9: Release = {
  version: "0.9.0",
  changes: [
    {
      subject: "Speed on PostgreSQL",
      was: "A group of calls waited for the database ten times and more, and every event of an environment was run by the node that held it.",
      now: "A group waits twice. What only touches the database runs where it was received, on whichever node that is, in its relay's order; calls out, schedules and retries stay with the node that holds the environment. One node runs almost twice as many events a second, three nodes two to three times as many.",
    },
    {
      subject: "relay move",
      was: "A node that was begun or stopped while its rows were moved away could write on into the old database.",
      now: "The database refuses it: such a node answers 503 not_recorded, and its log says where the rows are. relay move --undo lets it write again.",
    },
    {
      subject: "relay doctor behind PgBouncer",
      was: "In transaction mode it broke off with the words of a fault of ours.",
      now: "It says that the service needs session mode or the direct address. /docs/postgres says what works behind a pooler.",
    },
    {
      subject: "Quick hands in the dashboard",
      was: "Of two switches set in quick succession one was lost, a click was lost where the list moved under it, a definition typed on while its save was on its way was thrown away, and keys pressed as soon as a page was seen did nothing.",
      now: "All of them hold. Escape no longer closes away a key, a link or a secret that is still being made and is shown once. A refused address of a new person stays in its field. Enter behind a pasted id in Find anything goes to what it names, however slow the answer.",
    },
    {
      subject: "Lists with a span such as Last hour",
      was: "They blinked once a minute.",
      now: "They go on quietly, and do not move while somebody reads.",
    },
    {
      subject: "Smaller things",
      was: null,
      now: "A received call takes 5 to 9 % less of the processor. On PostgreSQL event histograms and the list of relays wait for the database less often.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
