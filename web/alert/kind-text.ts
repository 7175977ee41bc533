/** Short texts for the kinds of alerts and problems, by code. */
const KIND_WORDS: Readonly<Record<string, string>> = {
  relay_failed: "Events died",
  relay_refusing: "Refuses every call",
  never_verified: "No request has verified",
  secret_missing: "Secret missing",
  relay_silent: "Silent",
  relay_ignoring: "Ignores every call",
  relay_nobody: "Finds nobody",
  sale_nobody: "A sale matched no person",
  sale_suspended: "A suspended person paid",
  relay_failing: "Every attempt fails",
  relay_capped: "Over the cap",
  relay_uncalled: "Never called",
  relay_recovered: "Recovered",
  events_expiring: "Events are about to be dropped",
  events_dropped: "Events were dropped",
  proxy_unnamed: "Unnamed proxy",
  relay_misfit: "Does not fit the catalog",
  relay_unsigned_event: "Acts on unsigned events",
  relay_key_as_secret: "A key where a secret belongs",
  definition_broken: "Its file has a mistake",
  catalog_broken: "catalog.json has a mistake",
  codes_capped: "Sign-ins over the cap",
  codes_unmailed: "Sign-in codes are not mailed",
  writes_capped: "Writes over the cap",
  alerts_unmailed: "Alerts are not mailed",
  mail_unknown: "A mail may have left",
  sender_domain_required: "Mail needs a sender domain",
  environment_held: "On hold",
  approval_waiting: "A change of production waits for approval",
  backup_missing: "No backup",
  invite_capped: "Invites over the cap",
};

/** Returns null for a code without a text. The caller then shows the code. */
export function sayKind(code: string): string | null {
  return KIND_WORDS[code] ?? null;
}
