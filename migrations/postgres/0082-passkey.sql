CREATE TABLE passkey (
  id text COLLATE "C" PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL UNIQUE,
  public_key bytea NOT NULL,
  counter bigint NOT NULL,
  transports text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  used_at bigint
);
CREATE INDEX passkey_by_owner ON passkey (owner_id);
CREATE TABLE used_challenge (
  challenge_hash bytea PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX used_challenge_by_end ON used_challenge (expires_at);
