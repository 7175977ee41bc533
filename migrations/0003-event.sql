-- Events: one durable row an occurrence, before anything runs.

CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  relay_id TEXT NOT NULL,
  relay_name TEXT NOT NULL,
  trigger TEXT NOT NULL CHECK (trigger IN ('receiver', 'schedule', 'data_change')),
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'dead')),
  reason TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  -- NULL while due now; set while a retry waits.
  next_attempt_at INTEGER,
  -- Counts the attempts of all replays too, so that runs are numbered on.
  runs INTEGER NOT NULL DEFAULT 0,
  replays INTEGER NOT NULL DEFAULT 0,
  -- JSON text: { event, mapped }, { tick } or { record, previous }.
  payload TEXT NOT NULL,
  truncated INTEGER NOT NULL DEFAULT 0,
  preview TEXT,
  -- 1 when the sender did not sign the event itself.
  unsigned INTEGER NOT NULL DEFAULT 0,
  dedupe_hash BLOB,
  person_id TEXT,
  warnings TEXT,
  created_at INTEGER NOT NULL,
  -- When the present or last attempt began.
  started_at INTEGER,
  finished_at INTEGER
);
CREATE INDEX event_by_environment ON event (environment_id, seq);
CREATE INDEX event_by_relay ON event (environment_id, relay_name, seq);
CREATE INDEX event_ready ON event (relay_id, seq) WHERE state = 'queued' AND next_attempt_at IS NULL;
CREATE INDEX event_retry ON event (next_attempt_at) WHERE state = 'queued' AND next_attempt_at IS NOT NULL;
CREATE INDEX event_unfinished ON event (environment_id, state, seq) WHERE state IN ('queued', 'running');
CREATE INDEX event_unhappy ON event (environment_id, state, seq) WHERE state IN ('failed', 'dead');
CREATE INDEX event_by_person ON event (person_id, seq) WHERE person_id IS NOT NULL;

-- The dedupe key's first 63 bits, moved on by one where two keys share them; the whole hash stands on the event row.
CREATE TABLE dedupe (
  slot INTEGER PRIMARY KEY,
  event_seq INTEGER NOT NULL
);

-- One row an attempt: what each action did.
CREATE TABLE run (
  event_seq INTEGER NOT NULL,
  number INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  outcome TEXT CHECK (outcome IN ('ok', 'failed', 'interrupted')),
  results TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (event_seq, number)
) WITHOUT ROWID;

-- The work of an event that must not happen twice, by action type, target and ordinal.
CREATE TABLE effect (
  event_seq INTEGER NOT NULL,
  key TEXT NOT NULL,
  -- 'intended' before something leaves the house, 'done' with the result afterwards.
  state TEXT NOT NULL CHECK (state IN ('intended', 'done')),
  result TEXT,
  PRIMARY KEY (event_seq, key)
) WITHOUT ROWID;
