-- Where an owner signed in from, as a digest under the server's key: guesses of strangers do not lock the owner out there, also after a restart.
CREATE TABLE owner_network (
  network_digest BLOB PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  seen_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX owner_network_by_owner ON owner_network (owner_id, seen_at);
CREATE INDEX owner_network_by_time ON owner_network (seen_at);
