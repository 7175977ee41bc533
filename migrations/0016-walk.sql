-- Lists and look-ups that cost the same however full the store is: an index for each way one is asked for, and which record holds which file.

CREATE INDEX access_grant_by_entitlement ON access_grant (environment_id, entitlement, id) WHERE revoked_at IS NULL;
CREATE INDEX access_grant_unrevoked ON access_grant (environment_id, id) WHERE revoked_at IS NULL;
CREATE INDEX access_grant_held ON access_grant (environment_id, entitlement, expires_at, person_id) WHERE revoked_at IS NULL;
CREATE INDEX access_grant_ends ON access_grant (person_id, environment_id, entitlement, expires_at) WHERE revoked_at IS NULL;
CREATE INDEX access_grant_by_person_id ON access_grant (person_id, id);
CREATE INDEX purchase_by_ref ON purchase (environment_id, ref, id);
CREATE INDEX purchase_by_person_id ON purchase (person_id, id);
CREATE INDEX subscription_by_person ON subscription (person_id, id);
CREATE INDEX subscription_by_plan ON subscription (environment_id, plan) WHERE status = 'active';
CREATE INDEX email_by_person ON email (person_id, seq) WHERE person_id IS NOT NULL;
CREATE INDEX problem_by_environment ON problem (environment_id, id);
CREATE INDEX problem_by_standing ON problem (environment_id, id) WHERE cleared_at IS NULL;
CREATE INDEX alert_by_environment_id ON alert (environment_id, id);
CREATE INDEX file_by_environment ON file (environment_id, id);
CREATE INDEX record_by_collection_owner ON record (environment_id, collection, owner_id, seq) WHERE owner_id IS NOT NULL;
CREATE INDEX record_by_collection_recipient ON record (environment_id, collection, recipient_id, seq) WHERE recipient_id IS NOT NULL;

-- Kept by the triggers below, whoever writes a record.
CREATE TABLE record_file (
  file_id TEXT NOT NULL,
  record_seq INTEGER NOT NULL,
  PRIMARY KEY (file_id, record_seq)
) WITHOUT ROWID;
CREATE INDEX record_file_by_record ON record_file (record_seq);

INSERT OR IGNORE INTO record_file (file_id, record_seq)
SELECT held.atom, record.seq
FROM record, json_each(CASE WHEN json_valid(record.data) THEN record.data ELSE 'null' END) AS held
WHERE instr(record.data, '"fil_') > 0 AND held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_';

CREATE TRIGGER record_file_created AFTER INSERT ON record
WHEN instr(NEW.data, '"fil_') > 0
BEGIN
  INSERT OR IGNORE INTO record_file (file_id, record_seq)
  SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
  WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_';
END;

CREATE TRIGGER record_file_changed AFTER UPDATE OF data ON record
WHEN instr(OLD.data, '"fil_') > 0 OR instr(NEW.data, '"fil_') > 0
BEGIN
  DELETE FROM record_file WHERE record_seq = OLD.seq;
  INSERT OR IGNORE INTO record_file (file_id, record_seq)
  SELECT held.atom, NEW.seq FROM json_each(CASE WHEN json_valid(NEW.data) THEN NEW.data ELSE 'null' END) AS held
  WHERE held.type = 'text' AND substr(held.atom, 1, 4) = 'fil_';
END;

CREATE TRIGGER record_file_deleted AFTER DELETE ON record
WHEN instr(OLD.data, '"fil_') > 0
BEGIN
  DELETE FROM record_file WHERE record_seq = OLD.seq;
END;
