-- The authenticator apps (TOTP) of people who sign in.
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
-- The recovery codes of people with a second factor, each as a keyed digest.
CREATE TABLE recovery_code (
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  code_digest BLOB NOT NULL,
  used_at INTEGER,
  PRIMARY KEY (owner_id, code_digest)
) STRICT, WITHOUT ROWID;
-- Sign-ins that wait for a second factor.
CREATE TABLE pending_signin (
  token_hash BLOB PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  -- The first proof: a password or a reset link.
  how TEXT NOT NULL,
  -- The number of refused codes.
  failed INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_signin_by_owner ON pending_signin (owner_id);
CREATE INDEX pending_signin_by_end ON pending_signin (expires_at);
-- Whether each member needs a second factor, at most one row.
CREATE TABLE factor_rule (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  required INTEGER NOT NULL
) STRICT;
-- 1: the session began with a second factor, or with a proof that includes one.
ALTER TABLE session ADD COLUMN two_factor INTEGER NOT NULL DEFAULT 0;
