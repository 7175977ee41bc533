-- What is stored, counted as it is written, so that a limit on bytes costs one look-up: each person's records, and (owner_id '') everything
-- an environment's records and files take.
CREATE TABLE stored_bytes (
  environment_id INTEGER NOT NULL,
  owner_id TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (environment_id, owner_id)
) WITHOUT ROWID;

INSERT INTO stored_bytes (environment_id, owner_id, bytes)
SELECT environment_id, owner_id, sum(octet_length(data)) FROM record WHERE owner_id IS NOT NULL GROUP BY environment_id, owner_id;
INSERT INTO stored_bytes (environment_id, owner_id, bytes)
SELECT environment_id, '', sum(bytes) FROM (
  SELECT environment_id, octet_length(data) AS bytes FROM record UNION ALL SELECT environment_id, bytes FROM file)
GROUP BY environment_id;

CREATE TRIGGER stored_record_created AFTER INSERT ON record
BEGIN
  INSERT INTO stored_bytes (environment_id, owner_id, bytes) VALUES (NEW.environment_id, '', octet_length(NEW.data))
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_record_created_owned AFTER INSERT ON record WHEN NEW.owner_id IS NOT NULL
BEGIN
  INSERT INTO stored_bytes (environment_id, owner_id, bytes) VALUES (NEW.environment_id, NEW.owner_id, octet_length(NEW.data))
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_record_changed AFTER UPDATE OF data, owner_id ON record
BEGIN
  UPDATE stored_bytes SET bytes = bytes + octet_length(NEW.data) - octet_length(OLD.data)
  WHERE environment_id = NEW.environment_id AND owner_id = '';
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.data) WHERE environment_id = OLD.environment_id AND owner_id = OLD.owner_id;
  INSERT INTO stored_bytes (environment_id, owner_id, bytes)
  SELECT NEW.environment_id, NEW.owner_id, octet_length(NEW.data) WHERE NEW.owner_id IS NOT NULL
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_record_deleted AFTER DELETE ON record
BEGIN
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.data) WHERE environment_id = OLD.environment_id AND owner_id = '';
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.data) WHERE environment_id = OLD.environment_id AND owner_id = OLD.owner_id;
  DELETE FROM stored_bytes WHERE environment_id = OLD.environment_id AND owner_id = OLD.owner_id AND bytes <= 0;
END;
CREATE TRIGGER stored_file_created AFTER INSERT ON file
BEGIN
  INSERT INTO stored_bytes (environment_id, owner_id, bytes) VALUES (NEW.environment_id, '', NEW.bytes)
  ON CONFLICT (environment_id, owner_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_file_deleted AFTER DELETE ON file
BEGIN
  UPDATE stored_bytes SET bytes = bytes - OLD.bytes WHERE environment_id = OLD.environment_id AND owner_id = '';
END;
