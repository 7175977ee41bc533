-- The index finds the due events of a relay in blocks of 2,048 numbers, as the index of its name does. With the relay first, the index has a last page for each
-- relay, and a group of fifty relays' events wrote as many.
CREATE TABLE ready_block (
  -- A key of relay_key.
  of_relay INTEGER NOT NULL,
  -- A block that holds a due event of the relay. The newest one of a relay can be without any.
  block INTEGER NOT NULL,
  PRIMARY KEY (of_relay, block)
) WITHOUT ROWID;

INSERT INTO ready_block (of_relay, block)
  SELECT DISTINCT relay_key, seq >> 11 FROM event INDEXED BY event_ready WHERE state = 'queued' AND next_attempt_at IS NULL;

DROP INDEX event_ready;
CREATE INDEX event_ready ON event (seq >> 11, relay_key) WHERE state = 'queued' AND next_attempt_at IS NULL;

-- The relay's newest block stays while it is empty, so that a short queue adds and removes no row for each event. The next one removes it.
CREATE TRIGGER ready_block_begun AFTER INSERT ON event
WHEN NEW.state = 'queued' AND NEW.next_attempt_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ready_block WHERE of_relay = NEW.relay_key AND block = NEW.seq >> 11)
BEGIN
  INSERT INTO ready_block (of_relay, block) VALUES (NEW.relay_key, NEW.seq >> 11);
  DELETE FROM ready_block WHERE of_relay = NEW.relay_key
    AND block = (SELECT max(block) FROM ready_block WHERE of_relay = NEW.relay_key AND block < NEW.seq >> 11)
    AND NOT EXISTS (SELECT 1 FROM event INDEXED BY event_ready WHERE (seq >> 11) = +ready_block.block AND relay_key = NEW.relay_key AND state = 'queued' AND next_attempt_at IS NULL);
END;

CREATE TRIGGER ready_block_begun_again AFTER UPDATE OF state, next_attempt_at, relay_key ON event
WHEN NEW.state = 'queued' AND NEW.next_attempt_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ready_block WHERE of_relay = NEW.relay_key AND block = NEW.seq >> 11)
BEGIN
  INSERT INTO ready_block (of_relay, block) VALUES (NEW.relay_key, NEW.seq >> 11);
END;

CREATE TRIGGER ready_block_left AFTER UPDATE OF state, next_attempt_at, relay_key ON event
WHEN OLD.state = 'queued' AND OLD.next_attempt_at IS NULL
  AND (OLD.seq >> 11) < (SELECT max(block) FROM ready_block WHERE of_relay = OLD.relay_key)
  AND NOT EXISTS (SELECT 1 FROM event INDEXED BY event_ready WHERE (seq >> 11) = (OLD.seq >> 11) AND relay_key = OLD.relay_key AND state = 'queued' AND next_attempt_at IS NULL)
BEGIN
  DELETE FROM ready_block WHERE of_relay = OLD.relay_key AND block = OLD.seq >> 11;
END;

CREATE TRIGGER ready_block_deleted AFTER DELETE ON event
WHEN OLD.state = 'queued' AND OLD.next_attempt_at IS NULL
  AND (OLD.seq >> 11) < (SELECT max(block) FROM ready_block WHERE of_relay = OLD.relay_key)
  AND NOT EXISTS (SELECT 1 FROM event INDEXED BY event_ready WHERE (seq >> 11) = (OLD.seq >> 11) AND relay_key = OLD.relay_key AND state = 'queued' AND next_attempt_at IS NULL)
BEGIN
  DELETE FROM ready_block WHERE of_relay = OLD.relay_key AND block = OLD.seq >> 11;
END;
