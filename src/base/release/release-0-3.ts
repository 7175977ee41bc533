/** What release 0.3.0 changed. It is never edited. */
import type { Release } from "./release.ts";

export const RELEASE_0_3: Release = {
  version: "0.3.0",
  changes: [
    {
      subject: "Pages to try the client library",
      was: null,
      now: "In local development the files of service/public/ are served at http://localhost:<port>/public/, as they are at each request; relay dev prints the address where the folder exists.",
    },
    {
      subject: "The dashboard's name in local development",
      was: "It answered under localhost and 127.0.0.1 alike.",
      now: "http://localhost:<port> leads to http://127.0.0.1:<port>: a page of service/public/ is another site than the dashboard and cannot act with its session.",
    },
    {
      subject: "Calls that are refused one after the other",
      was: "How long a receiver had refused every call was forgotten by a restart.",
      now: "It stands on the relay's row, so that the alert relay_refusing comes in time across restarts.",
    },
    {
      subject: "Calls of call_url keep their connection",
      was: "Each call opened a connection of its own (Connection: close).",
      now: "A connection waits up to four seconds for the next notice to the same address (Connection: keep-alive); every attempt is still resolved and judged by itself. A notice that a server let go unread is posted again at once, under the same id.",
    },
    {
      subject: "Record changes that many relays watch",
      was: "Their events were made in one long transaction, during which nothing else was answered.",
      now: "They are made in small steps, and a write costs the same however many relays watch it.",
    },
    {
      subject: "Faster ingestion",
      was: "Each dedupe key cost the database a page of its own.",
      now: "Keys are kept in a log and sorted runs. The first start brings the database to the new schema; keys of 0.2.0 go on counting.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
