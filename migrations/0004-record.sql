-- Collections, their records and files.

CREATE TABLE collection (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('shared', 'private', 'addressed', 'direct')),
  fields TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;

CREATE TABLE record (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  data TEXT NOT NULL,
  owner_id TEXT,
  recipient_id TEXT,
  -- Who wrote it last, in words: `relay:<name>`, `key:<id>`, `dashboard`, `person:<id>`, `receipt`.
  written_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX record_by_collection ON record (environment_id, collection, seq);
CREATE INDEX record_by_owner ON record (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX record_by_recipient ON record (recipient_id) WHERE recipient_id IS NOT NULL;

CREATE TABLE file (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  content BLOB NOT NULL,
  created_at INTEGER NOT NULL
);
