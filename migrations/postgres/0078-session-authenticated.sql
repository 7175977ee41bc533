-- The time when the person of a session last proved who they are. NULL: when the session began.
ALTER TABLE session ADD COLUMN authenticated_at bigint;
