CREATE TABLE person_customer (
  environment_id bigint NOT NULL,
  space text COLLATE "C" NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  person_id text COLLATE "C" NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  arrival bigint NOT NULL,
  event_id text COLLATE "C",
  created_at bigint NOT NULL,
  PRIMARY KEY (environment_id, space, customer_id)
);
CREATE INDEX person_customer_by_person ON person_customer (person_id);
