/** Parsing of a request that a user pastes into a relay's Test tab. */
import { expect, test } from "bun:test";
import { type PastedCall, readPastedCall } from "../../src/base/shared/pasted-request.ts";

const JSON_BODY = '{"id":"it\'s \\"1\\""}';
const BARE = { headers: null, contentType: null, search: "" };
const SIGNED = { "content-type": "application/json", "x-sig": "abc" };

const ROWS: readonly (readonly [what: string, text: string, read: PastedCall])[] = [
  ["only a body", '{"id":1}', { ...BARE, body: '{"id":1}' }],
  ["only a form", "id=1&note=a%20b", { ...BARE, body: "id=1&note=a%20b" }],
  ["a text that starts like a header", "note: paid\nmore", { ...BARE, body: "note: paid\nmore" }],
  [
    "headers and a body",
    "Content-Type: application/json\nX-Sig:  abc \n\n{}",
    { body: "{}", headers: SIGNED, contentType: "application/json", search: "" },
  ],
  [
    "a whole request",
    "POST /hooks/shop/a?k=1 HTTP/1.1\r\nx-sig: abc\r\n\r\na=1\r\nb",
    { body: "a=1\nb", headers: { "x-sig": "abc" }, contentType: null, search: "?k=1" },
  ],
  ["a content type without a signature, which is signed here", "content-type: text/plain\n\nx", { ...BARE, body: "x", contentType: "text/plain" }],
  [
    "curl with quotes and line ends",
    `curl -X POST "https://x.test/hooks/a?b=c" \\\n  -H 'X-Sig: abc' --header "Content-Type: application/json" \\\n  --data-raw '{"id":"it'\\''s \\"1\\""}'`,
    { body: JSON_BODY, headers: SIGNED, contentType: "application/json", search: "?b=c" },
  ],
  ["curl as a browser copies it", "curl 'https://x.test/a' --data-raw $'{\"a\":\"it\\'s\\n\"}' --compressed", { ...BARE, body: '{"a":"it\'s\n"}' }],
  ["curl with = and several bodies", "curl --url=https://x.test/a --data=a=1 -d b=2", { ...BARE, body: "a=1&b=2" }],
  ["nothing", "  ", { ...BARE, body: "" }],
];
test.each(ROWS)("%s", (_what, text, read) => {
  expect(readPastedCall(text)).toEqual(read);
});
