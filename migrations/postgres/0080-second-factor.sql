CREATE TABLE totp (
  id text COLLATE "C" PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  sealed_secret bytea NOT NULL,
  last_step bigint NOT NULL,
  created_at bigint NOT NULL,
  confirmed_at bigint,
  used_at bigint
);
CREATE INDEX totp_by_owner ON totp (owner_id);
CREATE INDEX totp_unconfirmed ON totp (created_at) WHERE confirmed_at IS NULL;
CREATE TABLE recovery_code (
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  code_digest bytea NOT NULL,
  used_at bigint,
  PRIMARY KEY (owner_id, code_digest)
);
CREATE TABLE pending_signin (
  token_hash bytea PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  how text COLLATE "C" NOT NULL,
  failed bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX pending_signin_by_owner ON pending_signin (owner_id);
CREATE INDEX pending_signin_by_end ON pending_signin (expires_at);
CREATE TABLE factor_rule (
  one bigint PRIMARY KEY CHECK (one = 1),
  required bigint NOT NULL
);
ALTER TABLE session ADD COLUMN two_factor bigint NOT NULL DEFAULT 0;
