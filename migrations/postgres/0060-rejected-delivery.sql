CREATE TABLE rejected_delivery (
  relay_id text COLLATE "C" NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  event_id text COLLATE "C" NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  count bigint NOT NULL,
  arrived_at bigint,
  PRIMARY KEY (relay_id, event_id)
);
CREATE INDEX rejected_delivery_by_time ON rejected_delivery (last_at);
CREATE INDEX rejected_delivery_missing ON rejected_delivery (relay_id) WHERE arrived_at IS NULL;
