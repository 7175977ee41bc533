-- The addresses that a person had before: an event that names one still finds the person, and an erasure looks for them.
CREATE TABLE former_address (
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  email_key TEXT NOT NULL,
  environment_id INTEGER NOT NULL,
  email TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, email_key)
) WITHOUT ROWID;
CREATE INDEX former_address_by_email ON former_address (environment_id, email_key, changed_at);
