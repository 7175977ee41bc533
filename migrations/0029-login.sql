-- A key that relay login made belongs to its owner and ends; it goes with its owner.
ALTER TABLE api_key ADD COLUMN owner_id TEXT REFERENCES owner (id) ON DELETE CASCADE;
ALTER TABLE api_key ADD COLUMN expires_at INTEGER;
CREATE INDEX api_key_by_owner ON api_key (owner_id) WHERE owner_id IS NOT NULL;

-- A command that asks to be signed in, until its ten minutes are over and a while longer, so that what became of it can be said.
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
