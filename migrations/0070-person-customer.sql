-- The ids by which providers know a person: the pair of a space and an id names one person of the environment.
CREATE TABLE person_customer (
  environment_id INTEGER NOT NULL,
  -- The name of a receiver relay, whose provider gave the id.
  space TEXT NOT NULL,
  customer_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  -- The number of the newest event that named the person; by hand: of the newest event at that time.
  arrival INTEGER NOT NULL,
  -- That event; NULL: linked by hand.
  event_id TEXT,
  -- Since when the pair names this person.
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, space, customer_id)
) WITHOUT ROWID;
CREATE INDEX person_customer_by_person ON person_customer (person_id);
