-- The passkeys of people who sign in.
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
-- The challenges that passkeys signed, so that none is accepted again.
CREATE TABLE used_challenge (
  challenge_hash BLOB PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_challenge_by_end ON used_challenge (expires_at);
