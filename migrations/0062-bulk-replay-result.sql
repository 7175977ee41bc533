-- The results of a bulk replay. A row links an event that a bulk replay queued until the event has its result; the triggers count the result and
-- delete the row. Other events only evaluate the condition on `replays`.
ALTER TABLE bulk_replay ADD COLUMN followed INTEGER;
ALTER TABLE bulk_replay ADD COLUMN succeeded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bulk_replay ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bulk_replay ADD COLUMN last_result_at INTEGER;
CREATE TABLE bulk_replay_event (
  event_seq INTEGER PRIMARY KEY,
  bulk_replay_id TEXT NOT NULL
);
CREATE TRIGGER bulk_replay_event_ended AFTER UPDATE OF state ON event
WHEN NEW.replays > 0 AND NEW.state IN ('done', 'failed', 'dead') AND OLD.state IN ('queued', 'running')
BEGIN
  UPDATE bulk_replay SET succeeded = succeeded + (NEW.state = 'done'), failed = failed + (NEW.state <> 'done'), last_result_at = NEW.finished_at
  WHERE id = (SELECT bulk_replay_id FROM bulk_replay_event WHERE event_seq = NEW.seq);
  DELETE FROM bulk_replay_event WHERE event_seq = NEW.seq;
END;
CREATE TRIGGER bulk_replay_event_deleted AFTER DELETE ON event
WHEN OLD.replays > 0 AND OLD.state IN ('queued', 'running')
BEGIN
  UPDATE bulk_replay SET failed = failed + 1
  WHERE id = (SELECT bulk_replay_id FROM bulk_replay_event WHERE event_seq = OLD.seq);
  DELETE FROM bulk_replay_event WHERE event_seq = OLD.seq;
END;
