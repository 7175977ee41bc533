-- What somebody asks to be carried into production, and what an owner says of it in the browser. `files`: what was sent, as long as it may still
-- be carried, null where it is what stands in development; `shown`: the plan as the owner is shown it. Both are JSON.
CREATE TABLE approval (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  plan TEXT NOT NULL,
  source TEXT NOT NULL,
  files TEXT,
  replace_edited INTEGER NOT NULL,
  shown TEXT NOT NULL,
  state TEXT NOT NULL,
  asked_by TEXT NOT NULL,
  asked_with TEXT,
  asked_from TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  decided_by TEXT,
  decided_at INTEGER,
  ended_at INTEGER,
  why TEXT
) STRICT;
CREATE INDEX approval_open ON approval (environment_id, expires_at) WHERE ended_at IS NULL;
CREATE INDEX approval_due ON approval (expires_at) WHERE ended_at IS NULL;
CREATE INDEX approval_ended ON approval (ended_at) WHERE ended_at IS NOT NULL;
