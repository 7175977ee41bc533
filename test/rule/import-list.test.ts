/** The reading of a provider's list of past events in the dashboard, compared with the command's. */
import { describe, expect, test } from "bun:test";
import { findSender } from "../../src/rules/senders/registry.ts";
import { readList } from "../../web/relay/import-list.ts";

const formsOf = (name: string) => findSender(name)?.export?.forms ?? [];
const EVENT = '{"id":"evt_1","type":"paid","amount":12345678901234567890}';

const READ: [what: string, sender: string, text: string, lines: string | null, hasMore?: boolean][] = [
  ["the list of an API", "stripe", `{"object":"list","data":[${EVENT},{"id":"evt_2"}],"has_more":true}`, `${EVENT}\n{"id":"evt_2"}\n`, true],
  ["its last page", "stripe", `{\n"data": [${EVENT}],\n"has_more": false }`, `${EVENT}\n`],
  ["a list without a name", "none", `[${EVENT}]`, `${EVENT}\n`],
  ["items around the event", "paddle", `{"data":[{"payload":{"event_id":"e"}}],"meta":{"pagination":{"has_more":false}}}`, '{"event_id":"e"}\n'],
  ["one event of several lines", "stripe", '{\n  "id": "evt_1"\n}', '{"id":"evt_1"}\n'],
  [
    "deliveries with headers, one a line",
    "github",
    '{"request":{"headers":{"a":"b"},"payload":{"x":1}}}\n{"request":{"headers":{"a":"c"},"payload":{"x":2}}}\n',
    '{"headers":{"a":"b"},"body":"{\\"x\\":1}"}\n{"headers":{"a":"c"},"body":"{\\"x\\":2}"}\n',
  ],
  ["one event a line", "stripe", `${EVENT}\n{"id":"evt_2"}\n`, null],
  ["one event", "stripe", EVENT, null],
  ["a text that is no JSON", "github", "garbage\n{}", null],
];

describe("an export in the dashboard", () => {
  test.each(READ)("%s", (_what, sender, text, lines, hasMore = false) => {
    expect(readList(text, formsOf(sender))).toEqual(lines === null ? null : { text: lines, hasMore });
  });
});
