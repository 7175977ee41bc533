ALTER TABLE bulk_replay ADD COLUMN followed bigint;
ALTER TABLE bulk_replay ADD COLUMN succeeded bigint NOT NULL DEFAULT 0;
ALTER TABLE bulk_replay ADD COLUMN failed bigint NOT NULL DEFAULT 0;
ALTER TABLE bulk_replay ADD COLUMN last_result_at bigint;
CREATE TABLE bulk_replay_event (
  event_seq bigint PRIMARY KEY,
  bulk_replay_id text COLLATE "C" NOT NULL
);
CREATE FUNCTION bulk_replay_event_ended() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE ended text; BEGIN
  DELETE FROM bulk_replay_event WHERE event_seq = NEW.seq RETURNING bulk_replay_id INTO ended;
  UPDATE bulk_replay SET succeeded = succeeded + (NEW.state = 'done')::int, failed = failed + (NEW.state <> 'done')::int,
    last_result_at = NEW.finished_at WHERE id = ended;
  RETURN NULL;
END $$;
CREATE TRIGGER bulk_replay_event_ended AFTER UPDATE ON event
FOR EACH ROW WHEN (NEW.replays > 0 AND NEW.state IN ('done', 'failed', 'dead') AND OLD.state IN ('queued', 'running'))
EXECUTE FUNCTION bulk_replay_event_ended();
CREATE FUNCTION bulk_replay_event_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE ended text; BEGIN
  DELETE FROM bulk_replay_event WHERE event_seq = OLD.seq RETURNING bulk_replay_id INTO ended;
  UPDATE bulk_replay SET failed = failed + 1 WHERE id = ended;
  RETURN NULL;
END $$;
CREATE TRIGGER bulk_replay_event_deleted AFTER DELETE ON event
FOR EACH ROW WHEN (OLD.replays > 0 AND OLD.state IN ('queued', 'running')) EXECUTE FUNCTION bulk_replay_event_deleted();
