CREATE TABLE ended_link (
  token_hash bytea PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  why text COLLATE "C" NOT NULL CHECK (why IN ('used', 'replaced', 'expired')),
  expires_at bigint NOT NULL,
  refused_at bigint
);
CREATE INDEX ended_link_by_end ON ended_link (expires_at);
CREATE INDEX ended_link_by_owner ON ended_link (owner_id);
