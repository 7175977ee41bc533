-- What everything else hangs on: apps with their environments, the people and keys that manage them, audit, problems.

-- One row. Change capture looks at it; the store lowers it while the runner or an erasure writes.
CREATE TABLE capture_switch (captured INTEGER NOT NULL);
INSERT INTO capture_switch (captured) VALUES (1);

CREATE TABLE app (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE environment (
  id INTEGER PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES app (id) ON DELETE CASCADE,
  name TEXT NOT NULL CHECK (name IN ('development', 'production', 'local')),
  processor_secret BLOB,
  processor_secret_fingerprint TEXT,
  -- A keyed hash, so that two environments holding the same secret are told apart without unsealing.
  processor_secret_digest BLOB,
  processor_secret_set_at INTEGER,
  held_at INTEGER,
  settings TEXT NOT NULL DEFAULT '{}',
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  UNIQUE (app_id, name)
);

-- The people who sign in to the dashboard.
CREATE TABLE owner (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE COLLATE NOCASE,
  password_hash TEXT,
  created_at INTEGER NOT NULL
);

CREATE TABLE session (
  token_hash BLOB PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- One-time links: first set-up, password reset, the local dashboard.
CREATE TABLE signin_link (
  token_hash BLOB PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('setup', 'reset', 'local')),
  owner_id TEXT REFERENCES owner (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('secret', 'app')),
  name TEXT NOT NULL,
  key_hash BLOB NOT NULL UNIQUE,
  hint TEXT NOT NULL,
  origins TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
);
CREATE INDEX api_key_by_environment ON api_key (environment_id, created_at);

-- One row a management change, one row a run. Never updated.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  event_id TEXT,
  before TEXT,
  after TEXT
);
CREATE INDEX audit_by_environment ON audit (environment_id, seq);
CREATE INDEX audit_by_target ON audit (environment_id, target, seq) WHERE event_id IS NULL;
CREATE INDEX audit_changes ON audit (environment_id, seq) WHERE event_id IS NULL;

-- What the dashboard shows as wrong now; cleared, never deleted, when it is right again.
CREATE TABLE problem (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  code TEXT NOT NULL,
  target TEXT NOT NULL,
  message TEXT NOT NULL,
  raised_at INTEGER NOT NULL,
  cleared_at INTEGER
);
CREATE UNIQUE INDEX problem_standing ON problem (environment_id, code, target) WHERE cleared_at IS NULL;

CREATE TABLE alert (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  code TEXT NOT NULL,
  target TEXT NOT NULL,
  message TEXT NOT NULL,
  count INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  mailed_at INTEGER
);
CREATE INDEX alert_by_environment ON alert (environment_id, last_at);
