-- Private tables and columns get the names that the code uses. A rename changes no row, and PostgreSQL changes conditions of indexes itself. A view
-- has each table's former name, so that nodes of the previous version continue during an update. The next schema version drops the views.
ALTER TABLE gone_secret RENAME TO retired_secret;
ALTER TABLE retired_secret RENAME COLUMN swept TO cursor;
ALTER INDEX gone_secret_pkey RENAME TO retired_secret_pkey;
ALTER INDEX gone_secret_by_until RENAME TO retired_secret_by_until;
CREATE VIEW gone_secret AS SELECT environment_id, relay_name, secret, until, cursor AS swept FROM retired_secret;

ALTER TABLE ran_actions RENAME TO action_list;
ALTER INDEX ran_actions_pkey RENAME TO action_list_pkey;
CREATE VIEW ran_actions AS SELECT * FROM action_list;

ALTER TABLE event_clock_back RENAME TO clock_rollback;
ALTER INDEX event_clock_back_pkey RENAME TO clock_rollback_pkey;
CREATE VIEW event_clock_back AS SELECT * FROM clock_rollback;

ALTER TABLE recent_call RENAME TO recent_request;
ALTER INDEX recent_call_pkey RENAME TO recent_request_pkey;
CREATE VIEW recent_call AS SELECT * FROM recent_request;

ALTER TABLE unknown_call RENAME TO unknown_request;
ALTER INDEX unknown_call_pkey RENAME TO unknown_request_pkey;
CREATE VIEW unknown_call AS SELECT * FROM unknown_request;

ALTER TABLE record_watched RENAME TO past_record_watch;
ALTER INDEX record_watched_pkey RENAME TO past_record_watch_pkey;
ALTER INDEX record_watched_by_until RENAME TO past_record_watch_by_until;
CREATE VIEW record_watched AS SELECT * FROM past_record_watch;
CREATE OR REPLACE FUNCTION relay_watch() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE last bigint := (SELECT max(seq) FROM record_change); BEGIN
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO past_record_watch (relay_id, collection, change, until, since)
    SELECT relay_id, collection, change, last, since FROM record_watch WHERE relay_id = NEW.id AND since < last;
    DELETE FROM record_watch WHERE relay_id = NEW.id;
  END IF;
  IF json_extract(NEW.definition, '$.trigger.kind') = 'data_change' THEN
    INSERT INTO record_watch (environment_id, collection, change, relay_id, since, wanted)
    SELECT NEW.environment_id, json_extract(NEW.definition, '$.trigger.collection'), watched.value, NEW.id, coalesce(last, 0),
      json_extract(NEW.definition, '$.trigger.where')
    FROM json_each(NEW.definition, '$.trigger.on') AS watched ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

DROP INDEX problem_by_standing;
CREATE INDEX problem_open ON problem (environment_id, id) WHERE cleared_at IS NULL;
DROP INDEX problem_standing;
CREATE UNIQUE INDEX problem_open_target ON problem (environment_id, code, target) WHERE cleared_at IS NULL;
ALTER TABLE erasure RENAME COLUMN sought TO target;
ALTER TABLE relay RENAME COLUMN fruitless TO streaks;
ALTER TABLE event RENAME COLUMN came_by TO source;
