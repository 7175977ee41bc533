-- Temporary URLs that store what a provider sends, for one hour. The requests are sealed.
CREATE TABLE request_capture (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  created_by TEXT NOT NULL
) STRICT;
CREATE INDEX request_capture_by_environment ON request_capture (environment_id, id);
CREATE INDEX request_capture_by_end ON request_capture (expires_at);
CREATE TABLE captured_request (
  capture_id TEXT NOT NULL REFERENCES request_capture (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- The bytes of the body.
  bytes INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  PRIMARY KEY (capture_id, number)
) STRICT;
