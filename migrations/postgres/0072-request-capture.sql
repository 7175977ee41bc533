CREATE TABLE request_capture (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  environment_id bigint NOT NULL REFERENCES environment (id),
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  created_by text COLLATE "C" NOT NULL
);
CREATE INDEX request_capture_by_environment ON request_capture (environment_id, id);
CREATE INDEX request_capture_by_end ON request_capture (expires_at);
CREATE TABLE captured_request (
  capture_id text COLLATE "C" NOT NULL REFERENCES request_capture (id) ON DELETE CASCADE,
  number bigint NOT NULL,
  at bigint NOT NULL,
  bytes bigint NOT NULL,
  sealed bytea NOT NULL,
  PRIMARY KEY (capture_id, number)
);
