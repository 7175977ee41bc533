-- The response of an apply that named a key, for ten minutes: its caller gets it again with the same key.
CREATE TABLE apply_response (
  environment_id INTEGER NOT NULL REFERENCES environment (id),
  caller TEXT NOT NULL,
  request_key TEXT NOT NULL,
  -- A hash of the request.
  request_hash BLOB NOT NULL,
  -- The response with its new secrets, sealed with the master key.
  response BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, caller, request_key)
) STRICT;
CREATE INDEX apply_response_by_time ON apply_response (created_at);
