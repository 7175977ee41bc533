-- The event row in its final form: numbers for what a relay is and is called, no id of its own, and indexes that a new row touches few of.
-- The rows move in steps of some thousand before 0026 (src/store/event-move.ts).

-- A relay's name on its events; it outlives the relay, so that one made again under the name goes on with them.
CREATE TABLE relay_name (
  key INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (environment_id, name)
);

-- A relay on its events, never given to another: events of one that was deleted never run under the next of its name.
CREATE TABLE relay_key (
  key INTEGER PRIMARY KEY,
  relay_id TEXT NOT NULL UNIQUE,
  name_key INTEGER NOT NULL
);

INSERT INTO relay_name (environment_id, name) SELECT environment_id, name FROM relay ORDER BY id;
INSERT INTO relay_key (relay_id, name_key)
SELECT relay.id, relay_name.key FROM relay
JOIN relay_name ON relay_name.environment_id = relay.environment_id AND relay_name.name = relay.name ORDER BY relay.id;

CREATE TRIGGER relay_keyed AFTER INSERT ON relay
BEGIN
  INSERT OR IGNORE INTO relay_name (environment_id, name) VALUES (NEW.environment_id, NEW.name);
  INSERT OR IGNORE INTO relay_key (relay_id, name_key)
  SELECT NEW.id, key FROM relay_name WHERE environment_id = NEW.environment_id AND name = NEW.name;
END;

-- The greatest number of an event that was deleted as the newest: no number is given twice.
CREATE TABLE event_last (seq INTEGER NOT NULL);
INSERT INTO event_last (seq) SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0);

-- Events that arrived after the clock was set back: times rise with the numbers only between two of them.
CREATE TABLE event_clock_back (seq INTEGER PRIMARY KEY);

ALTER TABLE event RENAME TO event_before;
-- Their names are needed again; the others go with the table, when it is empty.
DROP INDEX event_ready;
DROP INDEX event_retry;
DROP INDEX event_running;
DROP INDEX event_unfinished;
DROP INDEX event_unhappy;

-- What a run changes stands before what it does not, and what may be long stands last.
CREATE TABLE event (
  -- Rises, and is never given twice.
  seq INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  name_key INTEGER NOT NULL,
  relay_key INTEGER NOT NULL,
  -- 'receiver', 'schedule' or 'data_change'.
  trigger TEXT NOT NULL,
  -- 'queued', 'running', 'done', 'failed' or 'dead'.
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  -- Counts the attempts of all replays too, so that runs are numbered on.
  runs INTEGER NOT NULL DEFAULT 0,
  replays INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  -- When the present or last attempt began.
  started_at INTEGER,
  finished_at INTEGER,
  -- NULL while due now; set while a retry waits.
  next_attempt_at INTEGER,
  reason TEXT,
  person_id TEXT,
  -- The relay's version whose map made `mapped`; NULL where that is not known.
  map_version INTEGER,
  -- 1 when `mapped` was made again by a later version and came out otherwise.
  mapped_again INTEGER NOT NULL DEFAULT 0,
  -- 1 when the body was a form; NULL where that is not known.
  form INTEGER,
  -- 1 when the sender did not sign the event itself.
  unsigned INTEGER NOT NULL DEFAULT 0,
  truncated INTEGER NOT NULL DEFAULT 0,
  -- The id of a row from before this version; NULL: its id is made of created_at and seq.
  former_id TEXT,
  -- JSON list of work keys: actions edited after their work that the last replay runs all the same.
  chosen TEXT,
  -- JSON list of sentences.
  warnings TEXT,
  dedupe_hash BLOB,
  -- JSON text: { event, mapped }, { tick } or { record, previous }.
  payload TEXT NOT NULL,
  -- The beginning of what was cut away.
  preview TEXT
);

CREATE INDEX event_of_relay ON event (name_key, seq);
CREATE INDEX event_ready ON event (relay_key, seq) WHERE state = 'queued' AND next_attempt_at IS NULL;
CREATE INDEX event_unfinished ON event (environment_id, state, seq) WHERE state IN ('queued', 'running');
-- Empty, or nearly, while all is well.
CREATE INDEX event_of_person ON event (person_id, seq) WHERE person_id IS NOT NULL;
CREATE INDEX event_retry ON event (next_attempt_at) WHERE state = 'queued' AND next_attempt_at IS NOT NULL;
CREATE INDEX event_running ON event (seq) WHERE state = 'running';
CREATE INDEX event_unhappy ON event (environment_id, state, seq) WHERE state IN ('failed', 'dead');
CREATE UNIQUE INDEX event_former ON event (former_id) WHERE former_id IS NOT NULL;

CREATE TRIGGER event_last_kept AFTER DELETE ON event
WHEN OLD.seq > (SELECT coalesce(max(seq), 0) FROM event)
BEGIN
  UPDATE event_last SET seq = max(seq, OLD.seq);
END;
