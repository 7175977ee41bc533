-- One-time links of members that were used, replaced or not used in time, so that a later use of one is audited, once.
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
