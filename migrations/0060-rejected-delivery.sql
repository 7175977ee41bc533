-- Requests that a receiver rejected because of its secret or recipe and that its map and `when` would have made events of, one row an event id. The
-- row with an empty id counts the requests whose id could not be read. A stranger may have sent any of them.
CREATE TABLE rejected_delivery (
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  event_id TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  -- When an event of the relay with this id was seen; NULL: none was.
  arrived_at INTEGER,
  PRIMARY KEY (relay_id, event_id)
) WITHOUT ROWID;
CREATE INDEX rejected_delivery_by_time ON rejected_delivery (last_at);
CREATE INDEX rejected_delivery_missing ON rejected_delivery (relay_id) WHERE arrived_at IS NULL;
