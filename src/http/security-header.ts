/** The headers that every answer carries against framing, sniffing, leaking and injected script; the same in every mode. */

const COMMON: Readonly<Record<string, string>> = {
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** For data: nothing in it may be shown or run as a page. */
export const DATA_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** For the dashboard: its own files and its own API, nothing inline and nothing from elsewhere. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
};
