/** Looks up currencies by their ISO 4217 codes. */

const CODES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

/** Returns whether a currency has this code, in capital letters. */
export function isCurrency(code: string): boolean {
  return CODES.has(code);
}

/** Returns the number of decimal digits: 2 for EUR, 0 for JPY. Returns 0 for a malformed code. */
export function currencyDigits(code: string): number {
  try {
    const format = new Intl.NumberFormat("en", { style: "currency", currency: code });
    return format.resolvedOptions().maximumFractionDigits ?? 2;
  } catch {
    return 0;
  }
}
