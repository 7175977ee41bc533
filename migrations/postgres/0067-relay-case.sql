CREATE TABLE relay_case (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  environment_id bigint NOT NULL REFERENCES environment (id),
  relay_id text COLLATE "C" NOT NULL REFERENCES relay (id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  body text COLLATE "C" NOT NULL,
  content_type text COLLATE "C" NOT NULL,
  expected text COLLATE "C" NOT NULL,
  person_id text COLLATE "C",
  updated_at bigint NOT NULL,
  updated_by text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX relay_case_by_name ON relay_case (relay_id, name);
CREATE INDEX relay_case_by_person ON relay_case (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX relay_case_by_environment ON relay_case (environment_id, id);
