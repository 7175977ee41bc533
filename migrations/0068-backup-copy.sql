-- The S3 endpoint that backups are copied to, at most one row. Both secrets are sealed.
CREATE TABLE backup_target (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  endpoint TEXT NOT NULL,
  bucket TEXT NOT NULL,
  region TEXT NOT NULL,
  prefix TEXT NOT NULL,
  access_key_id TEXT NOT NULL,
  secret_access_key BLOB NOT NULL,
  passphrase BLOB NOT NULL,
  keep INTEGER NOT NULL,
  set_at INTEGER NOT NULL
);

-- The copy of each backup, by the name of its file. failure is NULL after a success.
CREATE TABLE backup_copy (
  name TEXT NOT NULL PRIMARY KEY,
  copied_at INTEGER,
  bytes INTEGER,
  failed_at INTEGER,
  failure TEXT
);
