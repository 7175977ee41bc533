CREATE TABLE apply_response (
  environment_id bigint NOT NULL REFERENCES environment (id),
  caller text COLLATE "C" NOT NULL,
  request_key text COLLATE "C" NOT NULL,
  request_hash bytea NOT NULL,
  response bytea NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (environment_id, caller, request_key)
);
CREATE INDEX apply_response_by_time ON apply_response (created_at);
