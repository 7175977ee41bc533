/** The excerpt of a section in a search of the documentation: one line that reads as the section does. */
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
  // Commands are separated from each other and from the next sentence.
  ["systemctl", "A new one in the place of the old. Stop it first: sudo systemctl stop relay · sudo mv relay.new relay · Then wait."],
  // Keeps a multi-line code block together.
  ["receiver", 'It says when. · { "kind": "receiver", "map": { "event_id": "id" } }'],
  ["doctor", "The old one. The new one. · relay doctor"],
];

test.each(ROWS)("%s", (query, excerpt) => {
  expect(index.find(query).map((hit) => hit.excerpt)).toEqual([excerpt]);
});
