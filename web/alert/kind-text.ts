/** Short texts for the kinds of alerts and problems, by code. */
const KIND_WORDS: Readonly<Record<string, string>> = {
  relay_failed: "Dead events",
  relay_refusing: "Rejects every request",
  never_verified: "No request has verified",
  secret_missing: "Secret missing",
  relay_silent: "Silent",
  relay_ignoring: "Ignores every request",
  relay_nobody: "Finds no person",
  sale_nobody: "Payment without a person",
  sale_suspended: "Payment of a suspended person",
  relay_failing: "Every attempt fails",
  relay_capped: "Over its limit",
  relay_uncalled: "Never received a request",
  relay_recovered: "Recovered",
  events_expiring: "Events will be dropped soon",
  events_dropped: "Events were dropped",
  proxy_unnamed: "Proxy is not configured",
  relay_misfit: "Does not match the catalog",
  relay_unsigned_event: "Acts on unsigned events",
  relay_key_as_secret: "API key stored as a secret",
  definition_broken: "Error in its file",
  catalog_broken: "Error in catalog.json",
  file_behind: "Its file is behind",
  folder_away: "Folder of the files is missing",
  codes_capped: "Sign-ins over the limit",
  codes_unmailed: "Sign-in codes are not mailed",
  writes_capped: "Writes over the limit",
  alerts_unmailed: "Alerts are not mailed",
  alert_channel_failing: "Alerts do not reach a channel",
  mail_unknown: "Mail delivery unknown",
  sender_domain_required: "Mail needs a sender domain",
  requests_rejected: "Rejected requests are missing",
  environment_held: "On hold",
  approval_waiting: "A change to production waits for approval",
  backup_missing: "No backup",
  backup_copy_failed: "Backup is not copied",
  invite_capped: "Invites over the limit",
};

/** Returns null for a code without a text. The caller then shows the code. */
export function formatKind(code: string): string | null {
  return KIND_WORDS[code] ?? null;
}
