/** Short texts for rejection codes, for the filter. Each request shows its fix. */
const WORDS: Readonly<Record<string, string>> = {
  bad_signature: "Signature missing or wrong",
  too_many_signatures: "Too many signatures",
  invalid_json: "Body is not JSON",
  handshake_refused: "Handshake not answered",
  unsupported_media_type: "Content type is not JSON",
  body_too_large: "Body too large",
  unknown_receiver: "Unknown receiver name",
  receiver_capped: "Relay over its limit",
  source_capped: "Sender over its limit",
};

export function formatRefusal(code: string): string {
  return WORDS[code] ?? code.replaceAll("_", " ");
}
