-- What the clock and record changes become events through: the schedules' memory, and the change log with its triggers.

-- Which moments of a schedule are settled: ticked, missed or passed over. JSON: [[from, to], …] in milliseconds, both ends included.
CREATE TABLE schedule_cursor (
  relay_id TEXT PRIMARY KEY REFERENCES relay (id) ON DELETE CASCADE,
  settled TEXT NOT NULL DEFAULT '[]',
  -- Since when it counts while the clock stands before relay.active_since, having been set back.
  counted_from INTEGER
) WITHOUT ROWID;

-- Which relay watches which collection for which change; the triggers below keep it from the definitions.
CREATE TABLE record_watch (
  environment_id INTEGER NOT NULL,
  collection TEXT NOT NULL,
  change TEXT NOT NULL,
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  PRIMARY KEY (environment_id, collection, change, relay_id)
) WITHOUT ROWID;
CREATE INDEX record_watch_by_relay ON record_watch (relay_id);

INSERT INTO record_watch (environment_id, collection, change, relay_id)
SELECT DISTINCT relay.environment_id, json_extract(relay.definition, '$.trigger.collection'), watched.value, relay.id
FROM relay, json_each(relay.definition, '$.trigger.on') AS watched
WHERE json_extract(relay.definition, '$.trigger.kind') = 'data_change';

CREATE TRIGGER relay_watch_created AFTER INSERT ON relay
WHEN json_extract(NEW.definition, '$.trigger.kind') = 'data_change'
BEGIN
  INSERT OR IGNORE INTO record_watch (environment_id, collection, change, relay_id)
  SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id
  FROM json_each(NEW.definition, '$.trigger.on') AS watched;
END;

CREATE TRIGGER relay_watch_changed AFTER UPDATE OF definition ON relay
BEGIN
  DELETE FROM record_watch WHERE relay_id = NEW.id;
  INSERT OR IGNORE INTO record_watch (environment_id, collection, change, relay_id)
  SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id
  FROM json_each(NEW.definition, '$.trigger.on') AS watched
  WHERE json_extract(NEW.definition, '$.trigger.kind') = 'data_change';
END;

-- Writes that some relay watched when they were made, in their order; a row is deleted in the transaction that makes its events.
CREATE TABLE record_change (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  change TEXT NOT NULL CHECK (change IN ('created', 'updated', 'deleted')),
  -- Ids of the relays that watched, separated by spaces.
  relays TEXT NOT NULL,
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
  previous_updated_at INTEGER
);

CREATE TRIGGER record_change_created AFTER INSERT ON record
WHEN (SELECT captured FROM capture_switch) = 1
BEGIN
  INSERT INTO record_change (change, relays, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at)
  SELECT 'created', group_concat(relay_id, ' '), NEW.id, NEW.collection, NEW.created_at, NEW.data, NEW.owner_id, NEW.recipient_id,
    NEW.written_by, NEW.updated_at
  FROM record_watch WHERE environment_id = NEW.environment_id AND collection = NEW.collection AND change = 'created'
  HAVING count(*) > 0;
END;

-- A write that leaves data and people as they were is no change.
CREATE TRIGGER record_change_updated AFTER UPDATE ON record
WHEN (SELECT captured FROM capture_switch) = 1
  AND (NEW.data IS NOT OLD.data OR NEW.owner_id IS NOT OLD.owner_id OR NEW.recipient_id IS NOT OLD.recipient_id)
BEGIN
  INSERT INTO record_change (change, relays, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at,
    previous_data, previous_owner_id, previous_recipient_id, previous_written_by, previous_updated_at)
  SELECT 'updated', group_concat(relay_id, ' '), NEW.id, NEW.collection, NEW.created_at, NEW.data, NEW.owner_id, NEW.recipient_id,
    NEW.written_by, NEW.updated_at, OLD.data, OLD.owner_id, OLD.recipient_id, OLD.written_by, OLD.updated_at
  FROM record_watch WHERE environment_id = NEW.environment_id AND collection = NEW.collection AND change = 'updated'
  HAVING count(*) > 0;
END;

CREATE TRIGGER record_change_deleted AFTER DELETE ON record
WHEN (SELECT captured FROM capture_switch) = 1
BEGIN
  INSERT INTO record_change (change, relays, record_id, collection, created_at, data, owner_id, recipient_id, written_by, updated_at)
  SELECT 'deleted', group_concat(relay_id, ' '), OLD.id, OLD.collection, OLD.created_at, OLD.data, OLD.owner_id, OLD.recipient_id,
    OLD.written_by, OLD.updated_at
  FROM record_watch WHERE environment_id = OLD.environment_id AND collection = OLD.collection AND change = 'deleted'
  HAVING count(*) > 0;
END;
