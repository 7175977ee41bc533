-- The addresses that a person had before: an event that names one still finds the person, and an erasure looks for them.
CREATE TABLE former_address (
  person_id text COLLATE "C" NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  email_key text COLLATE "C" NOT NULL,
  environment_id bigint NOT NULL,
  email text COLLATE "C" NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (person_id, email_key)
);
CREATE INDEX former_address_by_email ON former_address (environment_id, email_key, changed_at);
