/**
 * The amount of a relay's sale, from the mapped values `amount` and `currency`. An amount with a decimal point is in the currency itself, one without
 * is in its smallest unit: so providers write them.
 */
import { currencyDigits, isCurrency } from "../ground/currency.ts";
import { isJsonObject, type Json, type JsonObject, scalarText } from "../ground/json.ts";

export interface PaidAmount {
  /** In the currency's smallest unit. */
  amountMinor: number;
  currency: string;
}

const UNREADABLE =
  "`amount` and `currency` of this event do not make an amount, so its receipt has none: map an amount such as 42.00 (in the currency) or 4200 (in its smallest unit), and a currency such as EUR.";

/** null: the event does not have both, or they make no amount, which is a warning. */
export function readPaidAmount(
  { mapped }: JsonObject,
  warn: (sentence: string) => void,
): PaidAmount | null {
  if (!isJsonObject(mapped) || isAbsent(mapped.amount) || isAbsent(mapped.currency)) return null;
  const currency = scalarText(mapped.currency)?.trim().toUpperCase() ?? "";
  const amountMinor = isCurrency(currency) ? readMinor(scalarText(mapped.amount), currency) : null;
  if (amountMinor !== null) return { amountMinor, currency };
  warn(UNREADABLE);
  return null;
}

function isAbsent(value: Json | undefined): boolean {
  return value === undefined || value === null || value === "";
}

function readMinor(text: string | null, currency: string): number | null {
  const [, whole, fraction] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(text?.trim() ?? "") ?? [];
  if (whole === undefined) return null;
  if (fraction === undefined) return Number(whole);
  const digits = currencyDigits(currency);
  // Smaller parts than the currency's smallest unit are no amount that anyone paid.
  if (/[1-9]/.test(fraction.slice(digits))) return null;
  const minor = Number(whole + fraction.slice(0, digits).padEnd(digits, "0"));
  return Number.isSafeInteger(minor) ? minor : null;
}
