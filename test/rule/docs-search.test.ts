/** What a search of the documentation shows of a section: one line that reads as its lines do. */
import { expect, test } from "bun:test";
import { readPage } from "../../src/interfaces/docs/page.ts";
import { SearchIndex } from "../../src/interfaces/docs/search.ts";

const PAGE = `---
title: Upgrade
summary: A new one in the place of the old.
group: Running a server
order: 1
---

Stop it first:

\`\`\`text shell
sudo systemctl stop relay
sudo mv relay.new relay
\`\`\`

Then wait.

## A trigger

It says when.

\`\`\`json trigger
{
  "kind": "receiver",
  "map": {
    "event_id": "id"
  }
}
\`\`\`

## Old and new

The old one.
The new one.

\`\`\`text shell
relay doctor
\`\`\`
`;
const index = new SearchIndex([readPage("upgrade", PAGE)]);

const ROWS: [query: string, excerpt: string][] = [
  // Commands stand apart from each other and from the sentence behind them.
  ["systemctl", "A new one in the place of the old. Stop it first: sudo systemctl stop relay · sudo mv relay.new relay · Then wait."],
  // What belongs to one thing is not cut into its lines.
  ["receiver", 'It says when. · { "kind": "receiver", "map": { "event_id": "id" } }'],
  ["doctor", "The old one. The new one. · relay doctor"],
];

test.each(ROWS)("%s", (query, excerpt) => {
  expect(index.find(query).map((hit) => hit.excerpt)).toEqual([excerpt]);
});
