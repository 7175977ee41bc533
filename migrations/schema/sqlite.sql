CREATE TABLE access_grant (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL,
  entitlement TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('relay', 'purchase', 'plan', 'hand')),
  -- What the source is: the relay's name, the purchase's or subscription's id, the key or owner.
  source_ref TEXT,
  -- The relay that caused it, by name, whatever the source.
  relay_name TEXT,
  event_id TEXT,
  reason TEXT,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  revoked_by TEXT
, end_at INTEGER
  GENERATED ALWAYS AS (min(coalesce(revoked_at, expires_at), coalesce(expires_at, revoked_at))) VIRTUAL, arrival INTEGER);

CREATE INDEX access_grant_by_end ON access_grant (person_id, end_at, id) WHERE end_at IS NOT NULL;

CREATE INDEX access_grant_by_entitlement ON access_grant (environment_id, entitlement, id) WHERE revoked_at IS NULL;

CREATE INDEX access_grant_by_person ON access_grant (person_id, granted_at);

CREATE INDEX access_grant_by_person_id ON access_grant (person_id, id);

CREATE INDEX access_grant_by_source ON access_grant (source_ref) WHERE source_ref IS NOT NULL;

CREATE INDEX access_grant_ends ON access_grant (person_id, environment_id, entitlement, expires_at) WHERE revoked_at IS NULL;

CREATE INDEX access_grant_held ON access_grant (environment_id, entitlement, expires_at, person_id) WHERE revoked_at IS NULL;

CREATE INDEX access_grant_live ON access_grant (person_id, entitlement) WHERE revoked_at IS NULL;

CREATE INDEX access_grant_unrevoked ON access_grant (environment_id, id) WHERE revoked_at IS NULL;

CREATE TABLE access_revocation (
  person_id TEXT NOT NULL,
  entitlement TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  environment_id INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  revoked_by TEXT NOT NULL,
  PRIMARY KEY (person_id, entitlement, arrival)
) WITHOUT ROWID;

CREATE INDEX access_revocation_by_arrival ON access_revocation (arrival);

CREATE TABLE access_slug (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  slug TEXT NOT NULL,
  title TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, slug)
) WITHOUT ROWID;

CREATE TABLE "action_list" (
  fingerprint TEXT PRIMARY KEY,
  -- JSON list, canonical.
  actions TEXT NOT NULL,
  -- When an attempt ran them last, to within a day.
  used_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE alert (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  code TEXT NOT NULL,
  target TEXT NOT NULL,
  message TEXT NOT NULL,
  count INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  mailed_at INTEGER
, resolved_at INTEGER, resolved_by TEXT);

CREATE INDEX alert_by_end ON alert (last_at);

CREATE INDEX alert_by_environment ON alert (environment_id, last_at);

CREATE INDEX alert_by_environment_id ON alert (environment_id, id);

CREATE INDEX alert_open ON alert (environment_id, id) WHERE resolved_at IS NULL;

CREATE INDEX alert_unmailed ON alert (at) WHERE mailed_at IS NULL;

CREATE TABLE alert_channel (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  -- The codes of the alerts that go to it, as JSON; NULL: all.
  codes TEXT,
  -- The plain fields, and the fingerprints of the secret ones, as JSON by name.
  fields TEXT NOT NULL,
  fingerprints TEXT NOT NULL,
  -- The secret fields as JSON by name, sealed.
  secret BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  -- The time of the last request to the service, and what it answered; NULL: none.
  tried_at INTEGER,
  result TEXT,
  -- The time of the first of the last failures in succession; NULL: the last request succeeded.
  failing_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  -- No request is sent before this time.
  retry_at INTEGER
) STRICT;

CREATE INDEX alert_channel_by_environment ON alert_channel (environment_id, id);

CREATE TABLE alert_delivery (
  alert_id TEXT NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
  channel_id TEXT NOT NULL REFERENCES alert_channel (id) ON DELETE CASCADE,
  opened_at INTEGER NOT NULL,
  -- The time when the service accepted that the alert is resolved; NULL: not yet.
  resolved_at INTEGER,
  PRIMARY KEY (alert_id, channel_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_delivery_by_channel ON alert_delivery (channel_id);

CREATE INDEX alert_delivery_open ON alert_delivery (channel_id) WHERE resolved_at IS NULL;

CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('secret', 'app')),
  name TEXT NOT NULL,
  key_hash BLOB NOT NULL UNIQUE,
  hint TEXT NOT NULL,
  origins TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
, owner_id TEXT REFERENCES owner (id) ON DELETE CASCADE, expires_at INTEGER, scopes TEXT);

CREATE INDEX api_key_by_environment ON api_key (environment_id, created_at);

CREATE INDEX api_key_by_owner ON api_key (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE app (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
, deleted_at INTEGER, deleted_by TEXT, emptied_at INTEGER);

CREATE TABLE apply_response (
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  caller TEXT NOT NULL,
  request_key TEXT NOT NULL,
  -- A hash of the request.
  request_hash BLOB NOT NULL,
  -- The response with its new secrets, sealed with the master key.
  response BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, caller, request_key)
) STRICT;

CREATE INDEX apply_response_by_time ON apply_response (created_at);

CREATE TABLE approval (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  plan TEXT NOT NULL,
  source TEXT NOT NULL,
  files TEXT,
  replace_edited INTEGER NOT NULL,
  shown TEXT NOT NULL,
  state TEXT NOT NULL,
  asked_by TEXT NOT NULL,
  asked_with TEXT,
  asked_from TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  decided_by TEXT,
  decided_at INTEGER,
  ended_at INTEGER,
  why TEXT
, source_commit TEXT) STRICT;

CREATE INDEX approval_due ON approval (expires_at) WHERE ended_at IS NULL;

CREATE INDEX approval_ended ON approval (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX approval_open ON approval (environment_id, expires_at) WHERE ended_at IS NULL;

CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  event_id TEXT,
  before TEXT,
  after TEXT
);

CREATE INDEX audit_by_environment ON audit (environment_id, seq);

CREATE INDEX audit_by_target ON audit (environment_id, target, seq) WHERE event_id IS NULL;

CREATE INDEX audit_changes ON audit (environment_id, seq) WHERE event_id IS NULL;

CREATE TABLE backup_copy (
  name TEXT NOT NULL PRIMARY KEY,
  copied_at INTEGER,
  bytes INTEGER,
  failed_at INTEGER,
  failure TEXT
);

CREATE TABLE backup_schedule (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  every_hours INTEGER,
  keep INTEGER NOT NULL
);

CREATE TABLE backup_target (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  endpoint TEXT NOT NULL,
  bucket TEXT NOT NULL,
  region TEXT NOT NULL,
  prefix TEXT NOT NULL,
  access_key_id TEXT NOT NULL,
  secret_access_key BLOB NOT NULL,
  passphrase BLOB NOT NULL,
  keep INTEGER NOT NULL,
  set_at INTEGER NOT NULL
);

CREATE TABLE bulk_replay (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  chosen TEXT NOT NULL,
  per_second INTEGER NOT NULL,
  matched INTEGER NOT NULL,
  replayed INTEGER NOT NULL DEFAULT 0,
  left_out TEXT NOT NULL DEFAULT '{}',
  cursor INTEGER NOT NULL,
  until_seq INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
, ended_until INTEGER NOT NULL DEFAULT 9007199254740991, move INTEGER NOT NULL DEFAULT 0, followed INTEGER, succeeded INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, last_result_at INTEGER) STRICT;

CREATE INDEX bulk_replay_by_environment ON bulk_replay (environment_id, id);

CREATE INDEX bulk_replay_finished ON bulk_replay (finished_at) WHERE finished_at IS NOT NULL;

CREATE UNIQUE INDEX bulk_replay_running ON bulk_replay (environment_id) WHERE state = 'running';

CREATE TABLE bulk_replay_event (
  event_seq INTEGER PRIMARY KEY,
  bulk_replay_id TEXT NOT NULL
);

CREATE TABLE capture_switch (captured INTEGER NOT NULL);

CREATE TABLE captured_request (
  capture_id TEXT NOT NULL REFERENCES request_capture (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- The bytes of the body.
  bytes INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  PRIMARY KEY (capture_id, number)
) STRICT;

CREATE TABLE "clock_rollback" (seq INTEGER PRIMARY KEY);

CREATE TABLE collection (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('shared', 'private', 'addressed', 'direct')),
  fields TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;

CREATE TABLE credit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  amount INTEGER NOT NULL,
  balance INTEGER NOT NULL,
  reason TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('relay', 'purchase', 'refund', 'hand')),
  relay_name TEXT,
  event_id TEXT,
  -- Applies once per person: `ref:<ref>` from a relay, `key:<key>` from the API, `purchase:<id>`, `refund:<id>`.
  once_key TEXT,
  created_at INTEGER NOT NULL
);

CREATE INDEX credit_by_person ON credit (person_id, seq);

CREATE UNIQUE INDEX credit_once ON credit (person_id, once_key) WHERE once_key IS NOT NULL;

CREATE TABLE dedupe (
  slot INTEGER PRIMARY KEY,
  event_seq INTEGER NOT NULL
);

CREATE TABLE "dedupe_log" (
  id INTEGER PRIMARY KEY,
  keys BLOB NOT NULL
);

CREATE TABLE "dedupe_page" (
  id INTEGER PRIMARY KEY,
  keys BLOB NOT NULL
);

CREATE TABLE "dedupe_segment" (
  segment INTEGER PRIMARY KEY,
  newest INTEGER NOT NULL,
  pages INTEGER NOT NULL,
  -- Tells which keys are surely not in the run.
  filter BLOB NOT NULL
);

CREATE TABLE effect (
  event_seq INTEGER NOT NULL,
  key TEXT NOT NULL,
  -- 'intended' before something leaves the house, 'done' with the result afterwards.
  state TEXT NOT NULL CHECK (state IN ('intended', 'done')),
  result TEXT, run INTEGER,
  PRIMARY KEY (event_seq, key)
) WITHOUT ROWID;

CREATE TABLE email (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  person_id TEXT,
  recipient TEXT NOT NULL,
  sender TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('event', 'account', 'alert', 'signin')),
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  -- 'mailbox' is local development: kept to be read in the dashboard, sent nowhere.
  state TEXT NOT NULL CHECK (state IN ('intended', 'sent', 'failed', 'mailbox', 'unknown')),
  message TEXT,
  relay_name TEXT,
  event_id TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
, left_at INTEGER, reason TEXT);

CREATE INDEX email_by_app_hour ON email (environment_id, created_at);

CREATE INDEX email_by_environment ON email (environment_id, seq);

CREATE INDEX email_by_person ON email (person_id, seq) WHERE person_id IS NOT NULL;

CREATE INDEX email_by_person_day ON email (person_id, created_at) WHERE person_id IS NOT NULL;

CREATE INDEX email_intended ON email (seq) WHERE state = 'intended';

CREATE INDEX email_unknown ON email (environment_id, seq) WHERE state = 'unknown';

CREATE TABLE ended_link (
  token_hash BLOB PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  why TEXT NOT NULL CHECK (why IN ('used', 'replaced', 'expired')),
  -- The time when the row is deleted.
  expires_at INTEGER NOT NULL,
  -- The time of the first use after the end; NULL: none.
  refused_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX ended_link_by_end ON ended_link (expires_at);

CREATE INDEX ended_link_by_owner ON ended_link (owner_id);

CREATE TABLE environment (
  id INTEGER PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
  name TEXT NOT NULL CHECK (name IN ('development', 'production', 'local')),
  processor_secret BLOB,
  processor_secret_fingerprint TEXT,
  -- A keyed hash, so that two environments holding the same secret are told apart without unsealing.
  processor_secret_digest BLOB,
  processor_secret_set_at INTEGER,
  held_at INTEGER,
  settings TEXT NOT NULL DEFAULT '{}',
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL, deleted_at INTEGER, released_through INTEGER,
  UNIQUE (app_id, name)
);

CREATE TABLE erasure (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  -- A keyed hash of the address as addresses are compared.
  email_digest BLOB NOT NULL,
  -- Events up to this one arrived before the erasure.
  event_seq INTEGER NOT NULL,
  -- What is looked for, sealed; NULL once nothing of it is left.
  target BLOB,
  erased_at INTEGER NOT NULL
);

CREATE INDEX erasure_by_email ON erasure (environment_id, email_digest);

CREATE INDEX erasure_open ON erasure (seq) WHERE target IS NOT NULL;

CREATE TABLE erasure_file (
  erasure_seq INTEGER NOT NULL,
  file_id TEXT NOT NULL,
  PRIMARY KEY (erasure_seq, file_id)
) WITHOUT ROWID;

CREATE TABLE event (
  -- Rises, and is never given twice.
  seq INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  name_key INTEGER NOT NULL,
  relay_key INTEGER NOT NULL,
  -- 'receiver', 'schedule' or 'data_change'.
  trigger TEXT NOT NULL,
  -- 'queued', 'running', 'done', 'failed' or 'dead'.
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  -- Counts the attempts of all replays too, so that runs are numbered on.
  runs INTEGER NOT NULL DEFAULT 0,
  replays INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  -- When the present or last attempt began.
  started_at INTEGER,
  finished_at INTEGER,
  -- NULL while due now; set while a retry waits.
  next_attempt_at INTEGER,
  reason TEXT,
  person_id TEXT,
  -- The relay's version whose map made `mapped`; NULL where that is not known.
  map_version INTEGER,
  -- 1 when `mapped` was made again by a later version and came out otherwise.
  mapped_again INTEGER NOT NULL DEFAULT 0,
  -- 1 when the body was a form; NULL where that is not known.
  form INTEGER,
  -- 1 when the sender did not sign the event itself.
  unsigned INTEGER NOT NULL DEFAULT 0,
  truncated INTEGER NOT NULL DEFAULT 0,
  -- The id of a row from before this version; NULL: its id is made of created_at and seq.
  former_id TEXT,
  -- JSON list of work keys: actions edited after their work that the last replay runs all the same.
  chosen TEXT,
  -- JSON list of sentences.
  warnings TEXT,
  dedupe_hash BLOB,
  -- JSON text: { event, mapped }, { tick } or { record, previous }.
  payload TEXT NOT NULL,
  -- The beginning of what was cut away.
  preview TEXT
, source TEXT);

CREATE UNIQUE INDEX event_former ON event (former_id) WHERE former_id IS NOT NULL;

CREATE INDEX event_of_person ON event (person_id, seq) WHERE person_id IS NOT NULL;

CREATE INDEX event_of_relay ON event (seq >> 11, name_key);

CREATE INDEX event_of_trigger ON event (environment_id, trigger, seq) WHERE trigger <> 'receiver';

CREATE INDEX event_ready ON event (seq >> 11, relay_key) WHERE state = 'queued' AND next_attempt_at IS NULL;

CREATE INDEX event_retry ON event (next_attempt_at) WHERE state = 'queued' AND next_attempt_at IS NOT NULL;

CREATE INDEX event_running ON event (seq) WHERE state = 'running';

CREATE INDEX event_unfinished ON event (environment_id, state, seq) WHERE state IN ('queued', 'running');

CREATE INDEX event_unhappy ON event (environment_id, state, seq, name_key, trigger, reason, created_at, finished_at) WHERE state IN ('failed', 'dead');

CREATE TRIGGER bulk_replay_event_deleted AFTER DELETE ON event
WHEN OLD.replays > 0 AND OLD.state IN ('queued', 'running')
BEGIN
  UPDATE bulk_replay SET failed = failed + 1
  WHERE id = (SELECT bulk_replay_id FROM bulk_replay_event WHERE event_seq = OLD.seq);
  DELETE FROM bulk_replay_event WHERE event_seq = OLD.seq;
END;

CREATE TRIGGER bulk_replay_event_ended AFTER UPDATE OF state ON event
WHEN NEW.replays > 0 AND NEW.state IN ('done', 'failed', 'dead') AND OLD.state IN ('queued', 'running')
BEGIN
  UPDATE bulk_replay SET succeeded = succeeded + (NEW.state = 'done'), failed = failed + (NEW.state <> 'done'), last_result_at = NEW.finished_at
  WHERE id = (SELECT bulk_replay_id FROM bulk_replay_event WHERE event_seq = NEW.seq);
  DELETE FROM bulk_replay_event WHERE event_seq = NEW.seq;
END;

CREATE TRIGGER event_block_begun AFTER INSERT ON event
WHEN NOT EXISTS (SELECT 1 FROM event_block WHERE of_name = NEW.name_key AND block = NEW.seq >> 11)
BEGIN
  INSERT INTO event_block (of_name, block) VALUES (NEW.name_key, NEW.seq >> 11);
END;

CREATE TRIGGER event_block_emptied AFTER DELETE ON event
WHEN NOT EXISTS (SELECT 1 FROM event WHERE (seq >> 11) = (OLD.seq >> 11) AND name_key = OLD.name_key)
BEGIN
  DELETE FROM event_block WHERE of_name = OLD.name_key AND block = OLD.seq >> 11;
END;

CREATE TRIGGER event_last_kept AFTER DELETE ON event
WHEN OLD.seq > (SELECT coalesce(max(seq), 0) FROM event)
BEGIN
  UPDATE event_last SET seq = max(seq, OLD.seq);
END;

CREATE TRIGGER ready_block_begun AFTER INSERT ON event
WHEN NEW.state = 'queued' AND NEW.next_attempt_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ready_block WHERE of_relay = NEW.relay_key AND block = NEW.seq >> 11)
BEGIN
  INSERT INTO ready_block (of_relay, block) VALUES (NEW.relay_key, NEW.seq >> 11);
  DELETE FROM ready_block WHERE of_relay = NEW.relay_key
    AND block = (SELECT max(block) FROM ready_block WHERE of_relay = NEW.relay_key AND block < NEW.seq >> 11)
    AND NOT EXISTS (SELECT 1 FROM event INDEXED BY event_ready WHERE (seq >> 11) = +ready_block.block AND relay_key = NEW.relay_key AND state = 'queued' AND next_attempt_at IS NULL);
END;

CREATE TRIGGER ready_block_begun_again AFTER UPDATE OF state, next_attempt_at, relay_key ON event
WHEN NEW.state = 'queued' AND NEW.next_attempt_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ready_block WHERE of_relay = NEW.relay_key AND block = NEW.seq >> 11)
BEGIN
  INSERT INTO ready_block (of_relay, block) VALUES (NEW.relay_key, NEW.seq >> 11);
END;

CREATE TRIGGER ready_block_deleted AFTER DELETE ON event
WHEN OLD.state = 'queued' AND OLD.next_attempt_at IS NULL
  AND (OLD.seq >> 11) < (SELECT max(block) FROM ready_block WHERE of_relay = OLD.relay_key)
  AND NOT EXISTS (SELECT 1 FROM event INDEXED BY event_ready WHERE (seq >> 11) = (OLD.seq >> 11) AND relay_key = OLD.relay_key AND state = 'queued' AND next_attempt_at IS NULL)
BEGIN
  DELETE FROM ready_block WHERE of_relay = OLD.relay_key AND block = OLD.seq >> 11;
END;

CREATE TRIGGER ready_block_left AFTER UPDATE OF state, next_attempt_at, relay_key ON event
WHEN OLD.state = 'queued' AND OLD.next_attempt_at IS NULL
  AND (OLD.seq >> 11) < (SELECT max(block) FROM ready_block WHERE of_relay = OLD.relay_key)
  AND NOT EXISTS (SELECT 1 FROM event INDEXED BY event_ready WHERE (seq >> 11) = (OLD.seq >> 11) AND relay_key = OLD.relay_key AND state = 'queued' AND next_attempt_at IS NULL)
BEGIN
  DELETE FROM ready_block WHERE of_relay = OLD.relay_key AND block = OLD.seq >> 11;
END;

CREATE TABLE event_block (
  of_name INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (of_name, block)
) WITHOUT ROWID;

CREATE TABLE event_last (seq INTEGER NOT NULL);

CREATE VIEW event_time_step AS SELECT 2000 AS ms;

CREATE TABLE factor_rule (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  required INTEGER NOT NULL
) STRICT;

CREATE TABLE file (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX file_by_environment ON file (environment_id, id);

CREATE TRIGGER stored_file_created AFTER INSERT ON file
BEGIN
  INSERT INTO stored_bytes (environment_id, owner_id, bytes) VALUES (NEW.environment_id, '', NEW.bytes)
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER stored_file_deleted AFTER DELETE ON file
BEGIN
  UPDATE stored_bytes SET bytes = bytes - OLD.bytes WHERE environment_id = OLD.environment_id AND owner_id = '';
END;

CREATE TABLE former_address (
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  email_key TEXT NOT NULL,
  environment_id INTEGER NOT NULL,
  email TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, email_key)
) WITHOUT ROWID;

CREATE INDEX former_address_by_email ON former_address (environment_id, email_key, changed_at);

CREATE TABLE group_membership (
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL,
  environment TEXT NOT NULL,
  role TEXT NOT NULL,
  payloads INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, app_id, environment, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE invite_count (
  environment_id INTEGER NOT NULL,
  utc_day TEXT NOT NULL,
  count INTEGER NOT NULL, signups INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (environment_id, utc_day)
) WITHOUT ROWID;

CREATE TABLE login_request (
  id TEXT PRIMARY KEY,
  device_hash BLOB NOT NULL UNIQUE,
  code_digest BLOB NOT NULL UNIQUE,
  machine TEXT NOT NULL,
  account TEXT NOT NULL,
  source TEXT NOT NULL,
  days INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  owner_id TEXT REFERENCES owner (id) ON DELETE CASCADE,
  environment_id INTEGER REFERENCES environment (id) ON DELETE CASCADE,
  key_id TEXT
) STRICT;

CREATE INDEX login_request_by_end ON login_request (expires_at);

CREATE INDEX login_request_by_owner ON login_request (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE mail_stop (
  person_id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  stopped_at INTEGER NOT NULL
);

CREATE INDEX mail_stop_by_environment ON mail_stop (environment_id, stopped_at);

CREATE TABLE master_key_proof (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  sealed BLOB NOT NULL
);

CREATE TABLE membership (
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL,
  environment TEXT NOT NULL,
  role TEXT NOT NULL,
  -- 1: the role also sees the values of payloads.
  payloads INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, app_id, environment)
) STRICT;

CREATE TABLE oidc_identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  linked_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX oidc_identity_by_owner ON oidc_identity (owner_id, issuer);

CREATE TABLE oidc_provider (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  name TEXT NOT NULL,
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  client_secret BLOB,
  groups_claim TEXT NOT NULL,
  -- The domains of allowed addresses, as a JSON array. An empty one allows every domain.
  domains TEXT NOT NULL,
  -- 1: an address counts as verified although the provider does not say so.
  trusts_email INTEGER NOT NULL,
  -- The roles that groups give, as a JSON array.
  roles TEXT NOT NULL,
  -- 0: sign-in with a password is off.
  passwords INTEGER NOT NULL,
  set_at INTEGER NOT NULL
) STRICT;

CREATE TABLE oidc_session (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  issuer TEXT NOT NULL,
  id_token BLOB
) STRICT, WITHOUT ROWID;

CREATE TABLE oidc_signin (
  state_hash BLOB NOT NULL PRIMARY KEY,
  browser_hash BLOB NOT NULL,
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  -- The nonce and the code verifier, sealed.
  secrets BLOB NOT NULL,
  -- The session that is authenticated again; NULL: a new session.
  session_id TEXT,
  return_to TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX oidc_signin_by_end ON oidc_signin (expires_at);

CREATE TABLE owner (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE COLLATE NOCASE,
  password_hash TEXT,
  created_at INTEGER NOT NULL
);

CREATE TABLE owner_network (
  network_digest BLOB PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  seen_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX owner_network_by_owner ON owner_network (owner_id, seen_at);

CREATE INDEX owner_network_by_time ON owner_network (seen_at);

CREATE TABLE passed_count (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, relay_name, outcome, at)
) WITHOUT ROWID;

CREATE INDEX passed_count_by_time ON passed_count (at);

CREATE TABLE passkey (
  id TEXT PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  -- The authenticator's ID of the key pair, in base64url.
  credential_id TEXT NOT NULL UNIQUE,
  public_key BLOB NOT NULL,
  -- The authenticator's count of signatures. It must grow, unless the authenticator does not count.
  counter INTEGER NOT NULL,
  -- How browsers reach the authenticator, as a JSON array.
  transports TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT;

CREATE INDEX passkey_by_owner ON passkey (owner_id);

CREATE TABLE "past_record_watch" (
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  collection TEXT NOT NULL,
  change TEXT NOT NULL,
  until INTEGER NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (relay_id, collection, change, until)
) WITHOUT ROWID;

CREATE INDEX past_record_watch_by_until ON past_record_watch (until);

CREATE TABLE pending_signin (
  token_hash BLOB PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  -- The first proof: a password or a reset link.
  how TEXT NOT NULL,
  -- The number of refused codes.
  failed INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_signin_by_end ON pending_signin (expires_at);

CREATE INDEX pending_signin_by_owner ON pending_signin (owner_id);

CREATE TABLE person (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  email TEXT,
  -- Lower-cased for comparison; NULL once erased.
  email_key TEXT,
  status TEXT NOT NULL CHECK (status IN ('invited', 'active', 'suspended', 'erased')),
  attributes TEXT NOT NULL DEFAULT '{}',
  -- Who created the person, in words, as in record.written_by.
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX person_by_email ON person (environment_id, email_key) WHERE email_key IS NOT NULL;

CREATE INDEX person_by_environment ON person (environment_id, id);

CREATE TRIGGER person_session_ends AFTER UPDATE OF status ON person
WHEN NEW.status IN ('suspended', 'erased') BEGIN
  DELETE FROM person_session WHERE person_id = NEW.id;
  DELETE FROM person_network WHERE person_id = NEW.id;
  DELETE FROM person_code WHERE environment_id = OLD.environment_id AND email_key = OLD.email_key;
END;

CREATE TABLE person_code (
  id INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  email_key TEXT NOT NULL,
  -- A keyed hash: six digits would be found again from a plain one.
  code_digest BLOB NOT NULL,
  -- A keyed hash of the network that asked for the code and of its address.
  network_digest BLOB NOT NULL,
  wrong_tries INTEGER NOT NULL DEFAULT 0,
  -- Wrong tries from networks that had not asked for it.
  foreign_tries INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL
);

CREATE INDEX person_code_by_email ON person_code (environment_id, email_key);

CREATE INDEX person_code_by_end ON person_code (expires_at);

CREATE TABLE person_customer (
  environment_id INTEGER NOT NULL,
  -- The name of a receiver relay, whose provider gave the id.
  space TEXT NOT NULL,
  customer_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  -- The number of the newest event that named the person; by hand: of the newest event at that time.
  arrival INTEGER NOT NULL,
  -- That event; NULL: linked by hand.
  event_id TEXT,
  -- Since when the pair names this person.
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, space, customer_id)
) WITHOUT ROWID;

CREATE INDEX person_customer_by_person ON person_customer (person_id);

CREATE TABLE person_network (
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  network_digest BLOB NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, network_digest)
) WITHOUT ROWID;

CREATE INDEX person_network_by_time ON person_network (seen_at);

CREATE TABLE person_session (
  token_hash BLOB PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX person_session_by_end ON person_session (expires_at);

CREATE INDEX person_session_by_person ON person_session (person_id);

CREATE TABLE person_token (
  environment_id INTEGER NOT NULL,
  token TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, token)
) WITHOUT ROWID;

CREATE INDEX person_token_by_person ON person_token (person_id);

CREATE TABLE plan (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  is_default INTEGER NOT NULL DEFAULT 0,
  sold_through TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;

CREATE UNIQUE INDEX plan_default ON plan (environment_id) WHERE is_default = 1;

CREATE TABLE plan_cancellation (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  plan TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  ref TEXT NOT NULL,
  event_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX plan_cancellation_by_environment ON plan_cancellation (environment_id, seq);

CREATE UNIQUE INDEX plan_cancellation_of_person ON plan_cancellation (person_id, arrival, plan, ref);

CREATE TABLE problem (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  code TEXT NOT NULL,
  target TEXT NOT NULL,
  message TEXT NOT NULL,
  raised_at INTEGER NOT NULL,
  cleared_at INTEGER
);

CREATE INDEX problem_by_environment ON problem (environment_id, id);

CREATE INDEX problem_cleared ON problem (cleared_at) WHERE cleared_at IS NOT NULL;

CREATE INDEX problem_open ON problem (environment_id, id) WHERE cleared_at IS NULL;

CREATE UNIQUE INDEX problem_open_target ON problem (environment_id, code, target) WHERE cleared_at IS NULL;

CREATE TABLE product (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  key TEXT NOT NULL,
  credits INTEGER NOT NULL DEFAULT 0,
  -- JSON: { kind: "payment_link", url } or { kind: "relay", relay }, or NULL.
  sold_through TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;

CREATE TABLE "purchase" (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('purchase', 'refund')),
  ref TEXT NOT NULL,
  item_kind TEXT NOT NULL CHECK (item_kind IN ('product', 'plan')),
  item TEXT NOT NULL,
  person_id TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('relay', 'payment')),
  relay_name TEXT,
  event_id TEXT,
  refunds TEXT,
  amount_minor INTEGER,
  currency TEXT,
  data TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  arrival INTEGER NOT NULL DEFAULT 0,
  confirmation INTEGER NOT NULL DEFAULT 0,
  moved_to TEXT
);

CREATE INDEX purchase_by_environment ON purchase (environment_id, id);

CREATE INDEX purchase_by_person ON purchase (person_id, created_at);

CREATE INDEX purchase_by_person_id ON purchase (person_id, id);

CREATE INDEX purchase_by_ref ON purchase (environment_id, ref, id);

CREATE INDEX purchase_of_plan ON purchase (person_id, arrival) WHERE kind = 'purchase' AND item_kind = 'plan';

CREATE UNIQUE INDEX purchase_under_ref ON purchase (environment_id, kind, ref) WHERE moved_to IS NULL;

CREATE TABLE ready_block (
  -- A key of relay_key.
  of_relay INTEGER NOT NULL,
  -- A block that holds a due event of the relay. The newest one of a relay can be without any.
  block INTEGER NOT NULL,
  PRIMARY KEY (of_relay, block)
) WITHOUT ROWID;

CREATE TABLE "recent_request" (
  environment_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  -- Counts the environment's calls; the newest has the highest.
  seq INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  code TEXT NOT NULL,
  cause TEXT NOT NULL,
  source TEXT NOT NULL,
  -- The first event's, on a duplicate.
  event_id TEXT,
  -- How many calls it stands for.
  count INTEGER NOT NULL DEFAULT 1, claimed TEXT, followers TEXT,
  PRIMARY KEY (environment_id, slot)
) WITHOUT ROWID;

CREATE TABLE record (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  data TEXT NOT NULL,
  owner_id TEXT,
  recipient_id TEXT,
  -- Who wrote it last, in words: `relay:<name>`, `key:<id>`, `dashboard`, `person:<id>`, `receipt`.
  written_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, event_id TEXT);

CREATE INDEX record_by_collection ON record (environment_id, collection, seq);

CREATE INDEX record_by_collection_owner ON record (environment_id, collection, owner_id, seq) WHERE owner_id IS NOT NULL;

CREATE INDEX record_by_collection_recipient ON record (environment_id, collection, recipient_id, seq) WHERE recipient_id IS NOT NULL;

CREATE INDEX record_by_owner ON record (owner_id) WHERE owner_id IS NOT NULL;

CREATE INDEX record_by_recipient ON record (recipient_id) WHERE recipient_id IS NOT NULL;

CREATE TRIGGER record_change_created AFTER INSERT ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND EXISTS (SELECT 1 FROM record_watch
    WHERE environment_id = NEW.environment_id AND collection = NEW.collection AND change = 'created')
BEGIN
  INSERT INTO record_change (environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at)
  VALUES (NEW.environment_id, 'created', NEW.id, NEW.collection, NEW.created_at, NEW.data, NEW.owner_id, NEW.recipient_id, NEW.written_by,
    NEW.updated_at);
END;

CREATE TRIGGER record_change_deleted AFTER DELETE ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND EXISTS (SELECT 1 FROM record_watch
    WHERE environment_id = OLD.environment_id AND collection = OLD.collection AND change = 'deleted')
BEGIN
  INSERT INTO record_change (environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at)
  VALUES (OLD.environment_id, 'deleted', OLD.id, OLD.collection, OLD.created_at, OLD.data, OLD.owner_id, OLD.recipient_id, OLD.written_by,
    OLD.updated_at);
END;

CREATE TRIGGER record_change_updated AFTER UPDATE ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND (NEW.data IS NOT OLD.data OR NEW.owner_id IS NOT OLD.owner_id OR NEW.recipient_id IS NOT OLD.recipient_id)
  AND EXISTS (SELECT 1 FROM record_watch
    WHERE environment_id = NEW.environment_id AND collection = NEW.collection AND change = 'updated')
BEGIN
  INSERT INTO record_change (environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at,
    previous_data, previous_owner_id, previous_recipient_id, previous_written_by, previous_updated_at)
  VALUES (NEW.environment_id, 'updated', NEW.id, NEW.collection, NEW.created_at, NEW.data, NEW.owner_id, NEW.recipient_id, NEW.written_by,
    NEW.updated_at, OLD.data, OLD.owner_id, OLD.recipient_id, OLD.written_by, OLD.updated_at);
END;

CREATE TRIGGER record_file_changed AFTER UPDATE OF data ON record
WHEN instr(OLD.data, '"fil_') > 0 OR instr(NEW.data, '"fil_') > 0
BEGIN
  DELETE FROM record_file WHERE record_seq = OLD.seq;
  INSERT OR IGNORE INTO record_file (file_id, record_seq)
  SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
  WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_' AND octet_length(held.atom) = 36;
END;

CREATE TRIGGER record_file_created AFTER INSERT ON record
WHEN instr(NEW.data, '"fil_') > 0
BEGIN
  INSERT OR IGNORE INTO record_file (file_id, record_seq)
  SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
  WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_' AND octet_length(held.atom) = 36;
END;

CREATE TRIGGER record_file_deleted AFTER DELETE ON record
WHEN instr(OLD.data, '"fil_') > 0
BEGIN
  DELETE FROM record_file WHERE record_seq = OLD.seq;
END;

CREATE TRIGGER stored_record_changed AFTER UPDATE OF data, owner_id ON record
BEGIN
  UPDATE stored_bytes SET bytes = bytes + octet_length(NEW.data) - octet_length(OLD.data)
  WHERE environment_id = NEW.environment_id AND owner_id = '';
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.data) WHERE environment_id = OLD.environment_id AND owner_id = OLD.owner_id;
  INSERT INTO stored_bytes (environment_id, owner_id, bytes)
  SELECT NEW.environment_id, NEW.owner_id, octet_length(NEW.data) WHERE NEW.owner_id IS NOT NULL
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER stored_record_created AFTER INSERT ON record
BEGIN
  INSERT INTO stored_bytes (environment_id, owner_id, bytes) VALUES (NEW.environment_id, '', octet_length(NEW.data))
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER stored_record_created_owned AFTER INSERT ON record WHEN NEW.owner_id IS NOT NULL
BEGIN
  INSERT INTO stored_bytes (environment_id, owner_id, bytes) VALUES (NEW.environment_id, NEW.owner_id, octet_length(NEW.data))
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER stored_record_deleted AFTER DELETE ON record
BEGIN
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.data) WHERE environment_id = OLD.environment_id AND owner_id = '';
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.data) WHERE environment_id = OLD.environment_id AND owner_id = OLD.owner_id;
  DELETE FROM stored_bytes WHERE environment_id = OLD.environment_id AND owner_id = OLD.owner_id AND bytes <= 0;
END;

CREATE TABLE record_change (
  -- Never given twice: spans are told by it.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  change TEXT NOT NULL CHECK (change IN ('created', 'updated', 'deleted')),
  record_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- The record as it is after the change; of a deleted one, as it was last.
  data TEXT NOT NULL,
  owner_id TEXT,
  recipient_id TEXT,
  written_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  -- What an update replaced; NULL on other changes.
  previous_data TEXT,
  previous_owner_id TEXT,
  previous_recipient_id TEXT,
  previous_written_by TEXT,
  previous_updated_at INTEGER,
  -- Relays are told in the order of their ids: the last that was. NULL: none yet.
  told_relay_id TEXT
);

CREATE TABLE record_file (
  file_id TEXT NOT NULL,
  record_seq INTEGER NOT NULL,
  PRIMARY KEY (file_id, record_seq)
) WITHOUT ROWID;

CREATE INDEX record_file_by_record ON record_file (record_seq);

CREATE TABLE record_watch (
  environment_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  change TEXT NOT NULL,
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  -- It watches changes with a higher number than this one, which was the log's last when it began.
  since INTEGER NOT NULL,
  -- The trigger's `where`, JSON; NULL: every record.
  wanted TEXT,
  PRIMARY KEY (environment_id, collection, change, relay_id)
) WITHOUT ROWID;

CREATE INDEX record_watch_by_relay ON record_watch (relay_id);

CREATE TABLE recovery_code (
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  code_digest BLOB NOT NULL,
  used_at INTEGER,
  PRIMARY KEY (owner_id, code_digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE rejected_count (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  every_ms INTEGER NOT NULL,
  at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, relay_name, every_ms, at)
) WITHOUT ROWID;

CREATE INDEX rejected_count_by_time ON rejected_count (every_ms, at);

CREATE TABLE rejected_delivery (
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  event_id TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  -- When an event of the relay with this id was seen; NULL: none was.
  arrived_at INTEGER, event_type TEXT, arrived_event TEXT,
  PRIMARY KEY (relay_id, event_id)
) WITHOUT ROWID;

CREATE INDEX rejected_delivery_by_time ON rejected_delivery (last_at);

CREATE INDEX rejected_delivery_missing ON rejected_delivery (relay_id) WHERE arrived_at IS NULL;

CREATE TABLE relay (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  definition TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
  origin_kind TEXT NOT NULL CHECK (origin_kind IN ('file', 'dashboard')),
  origin_at INTEGER NOT NULL,
  synced_at INTEGER,
  -- The receiver secret or public key: sealed bytes, and what may be shown of it.
  secret_kind TEXT NOT NULL DEFAULT 'none' CHECK (secret_kind IN ('minted', 'pasted', 'public_key', 'processor', 'none')),
  secret BLOB,
  secret_fingerprint TEXT,
  -- A keyed hash, so that two environments holding the same secret are told apart without unsealing.
  secret_digest BLOB,
  secret_set_at INTEGER,
  previous_secret BLOB,
  previous_secret_until INTEGER,
  signing_secret BLOB,
  signing_secret_set_at INTEGER,
  active_since INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, previous_secret_digest BLOB, refused_since INTEGER, refused_count INTEGER NOT NULL DEFAULT 0, refused_at INTEGER, accepted_at INTEGER, streaks TEXT, promoted_from TEXT, promoted_version INTEGER, source_name TEXT, previous_signing_secret BLOB, previous_signing_secret_until INTEGER,
  UNIQUE (environment_id, name)
);

CREATE TRIGGER relay_keyed AFTER INSERT ON relay
BEGIN
  INSERT OR IGNORE INTO relay_name (environment_id, name) VALUES (NEW.environment_id, NEW.name);
  INSERT OR IGNORE INTO relay_key (relay_id, name_key)
  SELECT NEW.id, key FROM relay_name WHERE environment_id = NEW.environment_id AND name = NEW.name;
END;

CREATE TRIGGER relay_watch_changed AFTER UPDATE OF definition ON relay
BEGIN
  INSERT INTO "past_record_watch" (relay_id, collection, change, until, since)
  SELECT relay_id, collection, change, (SELECT max(seq) FROM record_change), since
  FROM record_watch WHERE relay_id = NEW.id AND since < (SELECT max(seq) FROM record_change);
  DELETE FROM record_watch WHERE relay_id = NEW.id;
  INSERT OR IGNORE INTO record_watch (environment_id, collection, change, relay_id, since, wanted)
  SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id,
    coalesce((SELECT max(seq) FROM record_change), 0), json_extract(NEW.definition, '$.trigger.where')
  FROM json_each(NEW.definition, '$.trigger.on') AS watched
  WHERE json_extract(NEW.definition, '$.trigger.kind') = 'data_change';
END;

CREATE TRIGGER relay_watch_created AFTER INSERT ON relay
WHEN json_extract(NEW.definition, '$.trigger.kind') = 'data_change'
BEGIN
  INSERT OR IGNORE INTO record_watch (environment_id, collection, change, relay_id, since, wanted)
  SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id,
    coalesce((SELECT max(seq) FROM record_change), 0), json_extract(NEW.definition, '$.trigger.where')
  FROM json_each(NEW.definition, '$.trigger.on') AS watched;
END;

CREATE TABLE relay_case (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  content_type TEXT NOT NULL,
  -- The result at the time of keeping, as JSON.
  expected TEXT NOT NULL,
  -- The person that the request was about; NULL: none that existed then.
  person_id TEXT,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL
) STRICT;

CREATE INDEX relay_case_by_environment ON relay_case (environment_id, id);

CREATE UNIQUE INDEX relay_case_by_name ON relay_case (relay_id, name);

CREATE INDEX relay_case_by_person ON relay_case (person_id) WHERE person_id IS NOT NULL;

CREATE TABLE relay_key (
  key INTEGER PRIMARY KEY,
  relay_id TEXT NOT NULL UNIQUE,
  name_key INTEGER NOT NULL
);

CREATE TABLE relay_name (
  key INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (environment_id, name)
);

CREATE TABLE request_capture (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  created_by TEXT NOT NULL
) STRICT;

CREATE INDEX request_capture_by_end ON request_capture (expires_at);

CREATE INDEX request_capture_by_environment ON request_capture (environment_id, id);

CREATE TABLE "retired_secret" (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  secret BLOB NOT NULL,
  until INTEGER NOT NULL,
  -- The hash up to which the name's signatures were looked at.
  cursor BLOB NOT NULL,
  PRIMARY KEY (environment_id, relay_name, secret)
) WITHOUT ROWID;

CREATE INDEX retired_secret_by_until ON retired_secret (until);

CREATE TABLE run (
  event_seq INTEGER NOT NULL,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  outcome TEXT CHECK (outcome IN ('ok', 'failed', 'interrupted')),
  results TEXT NOT NULL DEFAULT '[]', actions TEXT, work TEXT, person_id TEXT,
  PRIMARY KEY (event_seq, number)
) WITHOUT ROWID;

CREATE TABLE runner_lease (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  -- Each server that runs here has the next one; whoever holds a lower one runs nothing any more.
  epoch INTEGER NOT NULL,
  -- Who has it, in words for people; NULL once it was given back.
  holder TEXT,
  -- What tells whether the holder can still be there: its machine and process, its lock file, and the database file it has open.
  host TEXT,
  pid INTEGER,
  lock_file TEXT,
  database_file TEXT,
  -- Another server asks whether the holder is there; it answers with the same number.
  asked INTEGER NOT NULL DEFAULT 0,
  answered INTEGER NOT NULL DEFAULT 0,
  -- Counts the looks at whether a write reaches the disk, so that each one changes a page.
  probes INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE sender_domain (
  environment_id INTEGER PRIMARY KEY REFERENCES environment (id) ON DELETE CASCADE,
  domain TEXT NOT NULL,
  verification_token TEXT NOT NULL,
  verified_at INTEGER,
  checked_at INTEGER,
  event_word TEXT NOT NULL DEFAULT 'event',
  account_word TEXT NOT NULL DEFAULT 'account'
);

CREATE TABLE session (
  token_hash BLOB PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
, seen_at INTEGER, source TEXT, agent TEXT, authenticated_at INTEGER, two_factor INTEGER NOT NULL DEFAULT 0, factor_at INTEGER) WITHOUT ROWID;

CREATE INDEX session_by_end ON session (expires_at);

CREATE INDEX session_by_owner ON session (owner_id, expires_at);

CREATE TABLE signature_memory (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  signed_text_hash BLOB NOT NULL,
  body_hash BLOB NOT NULL,
  event_id TEXT,
  -- When it may be forgotten; NULL lives as long as the secret.
  until INTEGER, secret BLOB,
  PRIMARY KEY (environment_id, relay_name, signed_text_hash)
) WITHOUT ROWID;

CREATE INDEX signature_memory_by_until ON signature_memory (until) WHERE until IS NOT NULL;

CREATE TABLE signin_link (
  token_hash BLOB PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('setup', 'reset', 'local')),
  owner_id TEXT REFERENCES owner (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL
, mail_state TEXT CHECK (mail_state IN ('sent', 'failed', 'unknown')), mail_message TEXT) WITHOUT ROWID;

CREATE INDEX signin_link_by_end ON signin_link (expires_at);

CREATE TABLE stored_bytes (
  environment_id INTEGER NOT NULL,
  owner_id TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (environment_id, owner_id)
) WITHOUT ROWID;

CREATE TABLE subscription (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  plan TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'ended')),
  billed_by TEXT NOT NULL CHECK (billed_by IN ('relay', 'processor')),
  processor_customer_id TEXT,
  relay_name TEXT,
  event_id TEXT,
  started_at INTEGER NOT NULL,
  renewed_at INTEGER,
  ended_at INTEGER
);

CREATE UNIQUE INDEX subscription_active ON subscription (environment_id, person_id) WHERE status = 'active';

CREATE INDEX subscription_by_environment ON subscription (environment_id, id);

CREATE INDEX subscription_by_person ON subscription (person_id, id);

CREATE INDEX subscription_by_plan ON subscription (environment_id, plan) WHERE status = 'active';

CREATE TABLE sync_minute (
  environment_id INTEGER NOT NULL PRIMARY KEY REFERENCES environment (id),
  began_at INTEGER NOT NULL,
  changes INTEGER NOT NULL
) STRICT;

CREATE TABLE synced (
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  target TEXT NOT NULL,
  content TEXT NOT NULL,
  synced_at INTEGER NOT NULL, source_commit TEXT,
  PRIMARY KEY (environment_id, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE totp (
  id TEXT PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  sealed_secret BLOB NOT NULL,
  -- The last time step whose code was accepted. Neither this step nor an earlier one is accepted again.
  last_step INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  -- NULL: the person has not typed a first code yet, so the app is no factor.
  confirmed_at INTEGER,
  used_at INTEGER
) STRICT;

CREATE INDEX totp_by_owner ON totp (owner_id);

CREATE INDEX totp_unconfirmed ON totp (created_at) WHERE confirmed_at IS NULL;

CREATE TABLE "unknown_request" (
  environment_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  -- Counts the environment's names; the newest has the highest.
  seq INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  source TEXT NOT NULL,
  -- The receiver that the sender may have meant.
  nearest TEXT,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;

CREATE TABLE used_challenge (
  challenge_hash BLOB PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX used_challenge_by_end ON used_challenge (expires_at);

INSERT INTO capture_switch (captured) VALUES (1);

INSERT INTO event_last (seq) VALUES (0);

INSERT INTO runner_lease (one, epoch, holder, host, pid, lock_file, database_file, asked, answered, probes) VALUES (1, 0, null, null, null, null, null, 0, 0, 0);

INSERT INTO sqlite_sequence (name, seq) VALUES ('record_change', 0);

INSERT INTO sqlite_sequence (name, seq) VALUES ('plan_cancellation', 0);
