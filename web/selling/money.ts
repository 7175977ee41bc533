/** Formats and parses amounts. The service uses only the currency's smallest unit. */

/** Formats an amount as "€99.00". An unknown currency shows the smallest unit. Returns null without an amount. */
export function formatAmount(amountMinor: number | null, currency: string | null): string | null {
  if (amountMinor === null) return null;
  if (currency === null) return String(amountMinor);
  try {
    const format = new Intl.NumberFormat("en", { style: "currency", currency });
    return format.format(amountMinor / 10 ** digitsOf(currency));
  } catch {
    return `${amountMinor} ${currency}`;
  }
}

/** Returns the decimal digits of a valid currency. */
function digitsOf(currency: string): number {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

type Typed =
  | { amountMinor?: number; currency?: string }
  | { field: "amountMinor" | "currency"; message: string };

/** Parses a typed amount into the smallest unit; empty if both fields are empty. Otherwise returns the wrong field with the reason and the fix. */
export function readAmount(amount: string, code: string): Typed {
  const currency = code.trim().toUpperCase();
  const text = amount.trim();
  if (text === "" && currency === "") return {};
  if (currency === "")
    return {
      field: "currency",
      message: "The currency is missing. Write its three letters, for example EUR.",
    };
  if (!Intl.supportedValuesOf("currency").includes(currency))
    return {
      field: "currency",
      message: `${currency} is not a currency. Write its three letters, for example EUR.`,
    };
  if (text === "")
    return { field: "amountMinor", message: "The amount is empty. Enter an amount, or remove the currency." };
  const digits = digitsOf(currency);
  const [, units = "", part = ""] = /^(\d{1,9})(?:[.,](\d+))?$/.exec(text) ?? [];
  if (units === "" || part.length > digits) {
    const example = digits === 0 ? "4200" : `4200.${"0".repeat(digits)}`;
    return {
      field: "amountMinor",
      message: `${text} is no amount in ${currency}: write it without spaces or thousands separators, for example ${example}.`,
    };
  }
  return { amountMinor: Number(units + part.padEnd(digits, "0")), currency };
}
