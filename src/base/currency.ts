/** Currencies by their codes, as ISO 4217 has them. */

const CODES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

/** Whether a currency has this code, in capital letters. */
export function isCurrency(code: string): boolean {
  return CODES.has(code);
}

/** The digits behind the decimal point: 2 for EUR, 0 for JPY; 0 for what is no code. */
export function currencyDigits(code: string): number {
  try {
    const format = new Intl.NumberFormat("en", { style: "currency", currency: code });
    return format.resolvedOptions().maximumFractionDigits ?? 2;
  } catch {
    return 0;
  }
}
