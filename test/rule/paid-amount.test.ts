/** The amount and currency on the receipt of a relay's sale. See the decisions, section 3, "amounts", and docs/people-and-selling.md. */
import { expect, test } from "bun:test";
import { type JsonObject, parseJson } from "../../src/base/json.ts";
import { readPaidAmount } from "../../src/shop/selling/paid-amount.ts";

/** Mapped values as a body contains them, and what the receipt keeps. `warned` means nothing, with a warning. */
const TABLE: [mapped: string, kept: string][] = [
  ['{ "amount": 4200, "currency": "EUR" }', "4200 EUR"],
  ['{ "amount": 4200, "currency": "eur" }', "4200 EUR"],
  ['{ "amount": "4200", "currency": "EUR" }', "4200 EUR"],
  ['{ "amount": "42.00", "currency": "EUR" }', "4200 EUR"],
  ['{ "amount": "42.5", "currency": "EUR" }', "4250 EUR"],
  ['{ "amount": " 42.50 ", "currency": " EUR " }', "4250 EUR"],
  ['{ "amount": "42.5000", "currency": "EUR" }', "4250 EUR"],
  ['{ "amount": 0, "currency": "EUR" }', "0 EUR"],
  ['{ "amount": "0.00", "currency": "EUR" }', "0 EUR"],
  ['{ "amount": 4200, "currency": "JPY" }', "4200 JPY"],
  ['{ "amount": "4200.00", "currency": "JPY" }', "4200 JPY"],
  ['{ "amount": "4.2", "currency": "KWD" }', "4200 KWD"],
  ['{ "amount": 4200 }', "nothing"],
  ['{ "currency": "EUR" }', "nothing"],
  ['{ "amount": null, "currency": "EUR" }', "nothing"],
  ['{ "amount": "", "currency": "EUR" }', "nothing"],
  ["{}", "nothing"],
  ['{ "amount": 42.5, "currency": "EUR" }', "warned"],
  ['{ "amount": "42,00", "currency": "EUR" }', "warned"],
  ['{ "amount": "1,299.00", "currency": "EUR" }', "warned"],
  ['{ "amount": "42.005", "currency": "EUR" }', "warned"],
  ['{ "amount": "42.5", "currency": "JPY" }', "warned"],
  ['{ "amount": -4200, "currency": "EUR" }', "warned"],
  ['{ "amount": "4.2e3", "currency": "EUR" }', "warned"],
  ['{ "amount": 1e30, "currency": "EUR" }', "warned"],
  ['{ "amount": 9999999999999999, "currency": "EUR" }', "warned"],
  ['{ "amount": "999999999999999.99", "currency": "EUR" }', "warned"],
  ['{ "amount": true, "currency": "EUR" }', "warned"],
  ['{ "amount": { "value": 4200 }, "currency": "EUR" }', "warned"],
  ['{ "amount": 4200, "currency": "EURO" }', "warned"],
  ['{ "amount": 4200, "currency": "XQQ" }', "warned"],
  ['{ "amount": 4200, "currency": 978 }', "warned"],
];

test.each(TABLE)("%s becomes %s on the receipt", (mapped, kept) => {
  const warnings: string[] = [];
  const found = readPaidAmount({ mapped: parseJson(mapped) as JsonObject }, (sentence) => warnings.push(sentence));
  const said = found === null ? (warnings.length === 0 ? "nothing" : "warned") : `${found.amountMinor} ${found.currency}`;
  expect([said, warnings.length]).toEqual([kept, kept === "warned" ? 1 : 0]);
});

test("an event of another kind has no mapped values", () => {
  expect(readPaidAmount({ record: { data: {} } }, () => undefined)).toBeNull();
});
