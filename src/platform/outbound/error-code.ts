/** Names the errors of connections. It connects nothing, so that a command that calls no server loads no network code. */

/** Reports whether an error concerns the certificate or the handshake rather than the network. */
export function isTlsError(error: unknown): boolean {
  return /CERT|SSL|TLS|SIGNED|ISSUER|SIGNATURE|HOSTNAME|EPROTO|CRL|CHAIN/.test(errorCode(error));
}

/** Returns the code of a system or TLS error, or its name: `ECONNREFUSED`, `CERT_HAS_EXPIRED`. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
