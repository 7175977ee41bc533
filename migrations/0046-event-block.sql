-- The events of a relay's name are led to in blocks of 2,048 numbers: with the name first, an index has a last page for each name, and a group
-- of fifty relays' events wrote as many. The rows' own number stands behind the name by itself.
DROP INDEX event_of_relay;
CREATE INDEX event_of_relay ON event (seq >> 11, name_key);

-- Which blocks hold any event of a name, so that nobody looks for a quiet name's in each.
CREATE TABLE event_block (
  of_name INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (of_name, block)
) WITHOUT ROWID;

INSERT INTO event_block (of_name, block) SELECT DISTINCT name_key, seq >> 11 FROM event INDEXED BY event_of_relay;

CREATE TRIGGER event_block_begun AFTER INSERT ON event
WHEN NOT EXISTS (SELECT 1 FROM event_block WHERE of_name = NEW.name_key AND block = NEW.seq >> 11)
BEGIN
  INSERT INTO event_block (of_name, block) VALUES (NEW.name_key, NEW.seq >> 11);
END;

CREATE TRIGGER event_block_emptied AFTER DELETE ON event
WHEN NOT EXISTS (SELECT 1 FROM event WHERE (seq >> 11) = (OLD.seq >> 11) AND name_key = OLD.name_key)
BEGIN
  DELETE FROM event_block WHERE of_name = OLD.name_key AND block = OLD.seq >> 11;
END;
