-- Relays: the definition as saved, and the sealed secrets that never leave again.

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
  updated_at INTEGER NOT NULL,
  UNIQUE (environment_id, name)
);

-- Signatures accepted once ({params} and {token} recipes), remembered by relay NAME past the relay's deletion.
CREATE TABLE signature_memory (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  signed_text_hash BLOB NOT NULL,
  body_hash BLOB NOT NULL,
  event_id TEXT,
  -- When it may be forgotten; NULL lives as long as the secret.
  until INTEGER,
  PRIMARY KEY (environment_id, relay_name, signed_text_hash)
) WITHOUT ROWID;
CREATE INDEX signature_memory_by_until ON signature_memory (until) WHERE until IS NOT NULL;
