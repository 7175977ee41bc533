/** What release 0.8.0 changes. */
import type { Release } from "./release.ts";

export const RELEASE_0_8: Release = {
  version: "0.8.0",
  changes: [
    {
      subject: "PostgreSQL",
      was: "The rows stood in the embedded database alone.",
      now: "relay serve --database postgres://… (or RELAY_DATABASE) keeps them in a PostgreSQL 15 or newer, and so does every command that opens the database. The same service, definitions, keys and answers; SQLite stays the default. Where the database is away, receivers answer 503 not_recorded and everything goes on by itself when it is back. /docs/postgres says when it is worth it.",
    },
    {
      subject: "Several nodes",
      was: "One server a database.",
      now: "Any number of servers on one PostgreSQL: each receives, answers and shows the dashboard; each environment's events are run by one of them, and another takes over in under 15 seconds when it dies, at once when it is stopped. Limits, sessions, links and streams hold on all of them. Settings, GET /api/nodes, /readyz, /metrics and relay doctor say who is there and who runs what.",
    },
    {
      subject: "relay move",
      was: null,
      now: "relay move copies a stopped service from SQLite to PostgreSQL or back, whole or not at all, and compares every row. relay backup and restore say what is used instead on PostgreSQL.",
    },
    {
      subject: "Memory at rest",
      was: "A server with a filled database took about 82 MiB before its first call.",
      now: "About 79 MiB: it loads its own command alone and gives back what only its start needed.",
    },
    {
      subject: "An open dashboard",
      was: "A page asked for all its figures once a second while events arrived.",
      now: "Figures that are dear to count are asked for every few seconds, so an open page takes little of a busy server.",
    },
    {
      subject: "Documentation",
      was: "It followed the system's theme, and had no page on the dashboard.",
      now: "It follows the theme chosen in the dashboard and has a page on it, with pictures. The lines for servers were run under a real systemd and Docker and mended where they were refused.",
    },
    {
      subject: "Docker",
      was: "Every compose command needed RELAY_DOMAIN in its environment, and the image's build fetched a frontend.",
      now: "packaging/.env holds the domain once; the build fetches what it needs alone.",
    },
    {
      subject: "A stop behind a proxy",
      was: "A connection whose large body was refused unread held a stop up for ten seconds.",
      now: "Such an answer closes its connection.",
    },
    {
      subject: "A stored definition that nobody can read",
      was: "One without its verify stopped the start of a newer version.",
      now: "It closes its relay alone.",
    },
    {
      subject: "Smaller things",
      was: null,
      now: "A number too large to be kept exactly is refused by the name of its field. PowerShell completes files in other folders. A browser at an address with two slashes in a row gets the page.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
