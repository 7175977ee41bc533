-- What lets an owner see that a sender's calls do not become events: the calls themselves, alerts by mail, and a rotation's overlap.

-- A ring an environment: calls to its receivers that became no event of their own. A new call takes the oldest one's slot.
CREATE TABLE recent_call (
  environment_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  -- Counts the environment's calls; the newest has the highest.
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('refused', 'ignored', 'duplicate')),
  code TEXT NOT NULL,
  cause TEXT NOT NULL,
  source TEXT NOT NULL,
  -- The first event's, on a duplicate.
  event_id TEXT,
  -- More than 1 for calls over a cap, which are told together.
  count INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (environment_id, slot)
) WITHOUT ROWID;

CREATE INDEX alert_unmailed ON alert (at) WHERE mailed_at IS NULL;

-- So that a secret that still verifies is as much one environment's as the present one.
ALTER TABLE relay ADD COLUMN previous_secret_digest BLOB;
