-- A write that is watched logs one row, however many relays watch: who watched it is told by spans of the log's numbers, and not by the row.

DROP TRIGGER record_change_created;
DROP TRIGGER record_change_updated;
DROP TRIGGER record_change_deleted;
DROP TRIGGER relay_watch_created;
DROP TRIGGER relay_watch_changed;
ALTER TABLE record_watch RENAME TO record_watch_before;
ALTER TABLE record_change RENAME TO record_change_before;
DROP INDEX record_watch_by_relay;

-- Which relay watches which collection for which change; the triggers below keep it from the definitions.
CREATE TABLE record_watch (
  environment_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  change TEXT NOT NULL,
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  -- It watches changes with a higher number than this one, which was the log's last when it began.
  since INTEGER NOT NULL,
  -- The trigger's `where`, JSON; NULL: every record.
  wanted TEXT,
  PRIMARY KEY (environment_id, collection, change, relay_id)
) WITHOUT ROWID;
CREATE INDEX record_watch_by_relay ON record_watch (relay_id);

-- Spans in which a relay watched under a definition it had before, kept while the log has changes that lie in them: since < seq <= until.
CREATE TABLE record_watched (
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  collection TEXT NOT NULL,
  change TEXT NOT NULL,
  until INTEGER NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (relay_id, collection, change, until)
) WITHOUT ROWID;
CREATE INDEX record_watched_by_until ON record_watched (until);

-- Writes that some relay watched when they were made, in their order; a row is deleted in the transaction that makes the last of its events.
CREATE TABLE record_change (
  -- Never given twice: spans are told by it.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  change TEXT NOT NULL CHECK (change IN ('created', 'updated', 'deleted')),
  record_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- The record as it is after the change; of a deleted one, as it was last.
  data TEXT NOT NULL,
  owner_id TEXT,
  recipient_id TEXT,
  written_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  -- What an update replaced; NULL on other changes.
  previous_data TEXT,
  previous_owner_id TEXT,
  previous_recipient_id TEXT,
  previous_written_by TEXT,
  previous_updated_at INTEGER,
  -- Relays are told in the order of their ids: the last that was. NULL: none yet.
  told_relay_id TEXT
);

-- What stands in the log goes on as it is: each change and relay that watched it is a span of its own. What nobody is left to be told of goes.
INSERT INTO record_change (seq, environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at,
  previous_data, previous_owner_id, previous_recipient_id, previous_written_by, previous_updated_at)
SELECT logged.seq, relay.environment_id, logged.change, logged.record_id, logged.collection, logged.created_at, logged.data, logged.owner_id,
  logged.recipient_id, logged.written_by, logged.updated_at, logged.previous_data, logged.previous_owner_id, logged.previous_recipient_id,
  logged.previous_written_by, logged.previous_updated_at
FROM record_change_before AS logged
JOIN relay ON relay.id = (
  SELECT watching.value FROM json_each('["' || replace(logged.relays, ' ', '","') || '"]') AS watching
  WHERE watching.value IN (SELECT id FROM relay) LIMIT 1
)
ORDER BY logged.seq;
INSERT INTO record_watched (relay_id, collection, change, until, since)
SELECT relay.id, logged.collection, logged.change, logged.seq, logged.seq - 1
FROM record_change_before AS logged, json_each('["' || replace(logged.relays, ' ', '","') || '"]') AS watching
JOIN relay ON relay.id = watching.value;
INSERT INTO record_watch (environment_id, collection, change, relay_id, since, wanted)
SELECT watch.environment_id, watch.collection, watch.change, watch.relay_id, coalesce((SELECT max(seq) FROM record_change), 0),
  json_extract(relay.definition, '$.trigger.where')
FROM record_watch_before AS watch JOIN relay ON relay.id = watch.relay_id;
DROP TABLE record_watch_before;
DROP TABLE record_change_before;

CREATE TRIGGER relay_watch_created AFTER INSERT ON relay
WHEN json_extract(NEW.definition, '$.trigger.kind') = 'data_change'
BEGIN
  INSERT OR IGNORE INTO record_watch (environment_id, collection, change, relay_id, since, wanted)
  SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id,
    coalesce((SELECT max(seq) FROM record_change), 0), json_extract(NEW.definition, '$.trigger.where')
  FROM json_each(NEW.definition, '$.trigger.on') AS watched;
END;

CREATE TRIGGER relay_watch_changed AFTER UPDATE OF definition ON relay
BEGIN
  INSERT INTO record_watched (relay_id, collection, change, until, since)
  SELECT relay_id, collection, change, (SELECT max(seq) FROM record_change), since
  FROM record_watch WHERE relay_id = NEW.id AND since < (SELECT max(seq) FROM record_change);
  DELETE FROM record_watch WHERE relay_id = NEW.id;
  INSERT OR IGNORE INTO record_watch (environment_id, collection, change, relay_id, since, wanted)
  SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id,
    coalesce((SELECT max(seq) FROM record_change), 0), json_extract(NEW.definition, '$.trigger.where')
  FROM json_each(NEW.definition, '$.trigger.on') AS watched
  WHERE json_extract(NEW.definition, '$.trigger.kind') = 'data_change';
END;

CREATE TRIGGER record_change_created AFTER INSERT ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND EXISTS (SELECT 1 FROM record_watch
    WHERE environment_id = NEW.environment_id AND collection = NEW.collection AND change = 'created')
BEGIN
  INSERT INTO record_change (environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at)
  VALUES (NEW.environment_id, 'created', NEW.id, NEW.collection, NEW.created_at, NEW.data, NEW.owner_id, NEW.recipient_id, NEW.written_by,
    NEW.updated_at);
END;

-- A write that leaves data and people as they were is no change.
CREATE TRIGGER record_change_updated AFTER UPDATE ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND (NEW.data IS NOT OLD.data OR NEW.owner_id IS NOT OLD.owner_id OR NEW.recipient_id IS NOT OLD.recipient_id)
  AND EXISTS (SELECT 1 FROM record_watch
    WHERE environment_id = NEW.environment_id AND collection = NEW.collection AND change = 'updated')
BEGIN
  INSERT INTO record_change (environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at,
    previous_data, previous_owner_id, previous_recipient_id, previous_written_by, previous_updated_at)
  VALUES (NEW.environment_id, 'updated', NEW.id, NEW.collection, NEW.created_at, NEW.data, NEW.owner_id, NEW.recipient_id, NEW.written_by,
    NEW.updated_at, OLD.data, OLD.owner_id, OLD.recipient_id, OLD.written_by, OLD.updated_at);
END;

CREATE TRIGGER record_change_deleted AFTER DELETE ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND EXISTS (SELECT 1 FROM record_watch
    WHERE environment_id = OLD.environment_id AND collection = OLD.collection AND change = 'deleted')
BEGIN
  INSERT INTO record_change (environment_id, change, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at)
  VALUES (OLD.environment_id, 'deleted', OLD.id, OLD.collection, OLD.created_at, OLD.data, OLD.owner_id, OLD.recipient_id, OLD.written_by,
    OLD.updated_at);
END;
