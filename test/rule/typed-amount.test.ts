/** A typed amount in the dashboard is converted to the currency's smallest unit, or refused at its field. */
import { expect, test } from "bun:test";
import { formatAmount, readAmount } from "../../web/selling/money.ts";

const READ: [amount: string, currency: string, amountMinor: number | undefined, code: string | undefined][] = [
  ["42.00", "EUR", 4200, "EUR"],
  ["42", "eur ", 4200, "EUR"],
  [" 42,5 ", "EUR", 4250, "EUR"],
  ["0", "EUR", 0, "EUR"],
  ["4200", "JPY", 4200, "JPY"],
  ["1.234", "KWD", 1234, "KWD"],
  ["999999999.99", "EUR", 99_999_999_999, "EUR"],
  ["", "", undefined, undefined],
];
test.each(READ)("%j %j is accepted", (amount, currency, amountMinor, code) => {
  expect(readAmount(amount, currency)).toEqual(amountMinor === undefined ? {} : { amountMinor, currency: code ?? "" });
});

const REFUSED: [amount: string, currency: string, field: "amountMinor" | "currency", words: string][] = [
  ["42", "", "currency", "The currency is missing. Write its three letters, for example EUR."],
  ["42", "EUX", "currency", "EUX is not a currency"],
  ["42", "E", "currency", "E is not a currency"],
  ["", "EUR", "amountMinor", "The amount is empty. Enter an amount, or remove the currency."],
  ["1,234.00", "EUR", "amountMinor", "1,234.00 is no amount in EUR: write it without spaces or thousands separators, for example 4200.00."],
  ["1,234", "EUR", "amountMinor", "1,234 is no amount in EUR"],
  ["1 234", "EUR", "amountMinor", "is no amount in EUR"],
  ["42.005", "EUR", "amountMinor", "is no amount in EUR"],
  ["42.5", "JPY", "amountMinor", "for example 4200."],
  ["-42", "EUR", "amountMinor", "is no amount in EUR"],
  ["1e3", "EUR", "amountMinor", "is no amount in EUR"],
  ["9999999999", "EUR", "amountMinor", "is no amount in EUR"],
];
test.each(REFUSED)("%j %j is refused", (amount, currency, field, words) => {
  expect(readAmount(amount, currency)).toEqual({ field, message: expect.stringContaining(words) });
});

test("an accepted amount is shown in the currency's usual form", () => {
  expect(formatAmount(4250, "EUR")?.replace(/\s/g, "")).toMatch(/42[.,]50/);
  expect(formatAmount(4200, null)).toBe("4200");
  expect(formatAmount(null, "EUR")).toBeNull();
});
