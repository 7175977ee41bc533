-- Example requests that a user keeps with a relay. Each save compares their result with the kept one.
CREATE TABLE relay_case (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  relay_id TEXT NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  content_type TEXT NOT NULL,
  -- The result at the time of keeping, as JSON.
  expected TEXT NOT NULL,
  -- The person that the request was about; NULL: none that existed then.
  person_id TEXT,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX relay_case_by_name ON relay_case (relay_id, name);
CREATE INDEX relay_case_by_person ON relay_case (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX relay_case_by_environment ON relay_case (environment_id, id);
