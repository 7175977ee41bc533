/** Amounts: shown as people write them, and read from what was typed. The service knows them in the currency's smallest unit alone. */

/** "€99.00"; the smallest unit as it is where the currency has none to be read by. null: no amount. */
export function sayAmount(amountMinor: number | null, currency: string | null): string | null {
  if (amountMinor === null) return null;
  if (currency === null) return String(amountMinor);
  try {
    const format = new Intl.NumberFormat("en", { style: "currency", currency });
    return format.format(amountMinor / 10 ** digitsOf(currency));
  } catch {
    return `${amountMinor} ${currency}`;
  }
}

/** Of a currency that is one. */
function digitsOf(currency: string): number {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

type Typed =
  | { amountMinor?: number; currency?: string }
  | { field: "amountMinor" | "currency"; message: string };

/** What was typed, in the smallest unit; empty where both fields are. Else which field is wrong, why, and what to do. */
export function readAmount(amount: string, code: string): Typed {
  const currency = code.trim().toUpperCase();
  const text = amount.trim();
  if (text === "" && currency === "") return {};
  if (currency === "")
    return {
      field: "currency",
      message: "The amount has no currency: write its three letters, such as EUR.",
    };
  if (!Intl.supportedValuesOf("currency").includes(currency))
    return {
      field: "currency",
      message: `${currency} is no currency: write its three letters, such as EUR.`,
    };
  if (text === "")
    return { field: "amountMinor", message: "The amount is empty: write it, or take the currency out too." };
  const digits = digitsOf(currency);
  const [, whole = "", part = ""] = /^(\d{1,9})(?:[.,](\d+))?$/.exec(text) ?? [];
  if (whole === "" || part.length > digits) {
    const example = digits === 0 ? "4200" : `4200.${"0".repeat(digits)}`;
    return {
      field: "amountMinor",
      message: `${text} is no amount in ${currency}: write it without spaces or marks between the thousands, such as ${example}.`,
    };
  }
  return { amountMinor: Number(whole + part.padEnd(digits, "0")), currency };
}
