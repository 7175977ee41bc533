/**
 * The amount of a relay's sale, from the mapped values `amount` and `currency`. Providers write amounts in two ways: a text with a decimal point is
 * in the currency, and a text or number without one is in its smallest unit. A JSON number with a decimal point is not read, because 42.00 EUR and 42
 * cents are the same number.
 */
import { currencyDigits, isCurrency } from "../../base/currency.ts";
import { isJsonObject, type Json, type JsonObject, scalarText } from "../../base/json.ts";

interface PaidAmount {
  /** Amount in the currency's smallest unit. */
  amountMinor: number;
  currency: string;
}

const UNREADABLE =
  '`amount` and `currency` of this event do not make an amount, so its receipt has none: map a text such as "42.00" (in the currency) or 4200 (in its smallest unit), and a currency such as EUR.';

/** Reads the amount. Returns null if the event lacks one of the two, or, with a warning, if they are not an amount. */
export function readPaidAmount({ mapped }: JsonObject, warn: (sentence: string) => void): PaidAmount | null {
  if (!isJsonObject(mapped) || isAbsent(mapped.amount) || isAbsent(mapped.currency)) return null;
  const currency = scalarText(mapped.currency)?.trim().toUpperCase() ?? "";
  const amountMinor = isCurrency(currency) ? readMinor(mapped.amount, currency) : null;
  if (amountMinor !== null) return { amountMinor, currency };
  warn(UNREADABLE);
  return null;
}

function isAbsent(value: Json | undefined): boolean {
  return value === undefined || value === null || value === "";
}

function readMinor(amount: Json | undefined, currency: string): number | null {
  const text = scalarText(amount)?.trim() ?? "";
  const [, units, fraction] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(text) ?? [];
  if (units === undefined || (fraction !== undefined && typeof amount !== "string")) return null;
  if (fraction === undefined) return Number(units);
  const digits = currencyDigits(currency);
  // Fractions of the smallest unit are not an amount that was paid.
  if (/[1-9]/.test(fraction.slice(digits))) return null;
  const minor = Number(units + fraction.slice(0, digits).padEnd(digits, "0"));
  return Number.isSafeInteger(minor) ? minor : null;
}
