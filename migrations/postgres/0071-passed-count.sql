CREATE TABLE passed_count (
  environment_id bigint NOT NULL,
  relay_name text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (environment_id, relay_name, outcome, at)
);
CREATE INDEX passed_count_by_time ON passed_count (at);
