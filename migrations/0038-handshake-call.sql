-- A call may be a handshake that was answered. What an outcome may be is the code's to say.
CREATE TABLE new_recent_call (
  environment_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  -- Counts the environment's calls; the newest has the highest.
  seq INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  code TEXT NOT NULL,
  cause TEXT NOT NULL,
  source TEXT NOT NULL,
  -- The first event's, on a duplicate.
  event_id TEXT,
  -- How many calls it stands for.
  count INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (environment_id, slot)
) WITHOUT ROWID;
INSERT INTO new_recent_call (environment_id, slot, seq, first_at, at, relay_name, outcome, code, cause, source, event_id, count)
  SELECT environment_id, slot, seq, first_at, at, relay_name, outcome, code, cause, source, event_id, count FROM recent_call;
DROP TABLE recent_call;
ALTER TABLE new_recent_call RENAME TO recent_call;
