/** Finds commands in a sentence. A test compares the pattern with the existing commands and with the sentences. */

const GROUPS = {
  admin: "create|reset|list|audit|sign-out|remove",
  alerts: "list|resolve|channels|add-channel|set-channel|test-channel|remove-channel",
  apps: "create|list|rename|delete",
  audit: "list",
  backups: "list|copy|endpoint|schedule",
  catalog: "list|set|delete",
  domain: "show|set|verify|remove",
  emails: "list|stopped|resend|test",
  events: "list|show|replay|retry|expunge|tail",
  files: "list|upload|download|delete",
  keys: "create|list|revoke",
  limits: "list",
  members: "list|invite|resend|change|remove|reset-factor|unlink|require-factor",
  oidc: "provider|passwords",
  people:
    "list|show|invite|grant|end|merge|change-address|credits|set|suspend|activate|add-token|remove-token|link|unlink|stop-mail|allow-mail",
  problems: "list",
  receipts: "list|record|refund|move",
  records: "list|show|set|delete",
  relays:
    "list|show|funnel|checklist|cases|rejected|skipped|pause|resume|retry|delete|history|restore|rotate-secret|set-secret|end-overlap",
  replays: "start|list|wait|stop",
  requests: "list|show|tail",
  settings: "get|set",
};
const ALONE =
  "backup|capture|changes|completion|config|dev|docs|doctor|guess|import-missed|init|licenses|login|logout|mcp|move|presets|promote|pull|ready|restore|schema|send|serve|simulate|status|sync|upgrade|validate|verifiers|whoami";
/** The commands whose argument is on or off. This `on` does not continue the sentence. */
const ON_OFF = "members require-factor|oidc passwords";
/** The words that continue the sentence after a command. */
const GOES_ON = `after|again|and|anew|as|asks?|before|blocks|brings|by|can|copy|creates?|does|ends|finds|first|for|from|have|if|in|instead|knows|lets|lists?|looks|makes?|names?|needs|now|of|(?<! settings set [a-z.]+ | (?:${ON_OFF}) )on|once|or|prints?|puts|removes?|requests?|requests?|runs?|says?|sets|shows?|signed|signs|so|stays?|tells?|that|then|to|until|was|what|when|which|while|who|with|writes`;

const BEGINNING = [...Object.entries(GROUPS).map(([group, words]) => `${group} (?:${words})`), ALONE].join(
  "|",
);
const WORD = String.raw`(?!(?:${GOES_ON})(?![\w-]))(?:<[^<>]{1,40}>|'[^']{0,60}'|[\w/-][\w@/=…-]*(?:(?:\.|:/{0,2})[\w-][\w@/=…-]*)*)`;

/** A regular expression without a capturing group. A sentence that merely mentions a relay does not match it. */
export const NAMED_COMMAND = String.raw`(?<![Tt]he )\brelay (?:${BEGINNING})(?![\w-])(?: ${WORD}){0,6}`;
