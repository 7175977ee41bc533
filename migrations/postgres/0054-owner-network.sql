CREATE TABLE owner_network (
  network_digest bytea PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  seen_at bigint NOT NULL
);
CREATE INDEX owner_network_by_owner ON owner_network (owner_id, seen_at);
CREATE INDEX owner_network_by_time ON owner_network (seen_at);
