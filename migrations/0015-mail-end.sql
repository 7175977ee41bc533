-- Mail: whether its text left, the class of what went wrong, and who wants no more event mail.

-- When the text began to leave, marked before its first byte does.
ALTER TABLE email ADD COLUMN left_at INTEGER;
ALTER TABLE email ADD COLUMN reason TEXT;

-- Of a mail without an end nobody can tell now whether it left.
UPDATE email SET left_at = created_at WHERE state = 'intended';
-- The mail server's own words are told to nobody.
UPDATE email SET message = 'The mail server did not take this mail.' WHERE state = 'failed';

CREATE INDEX email_intended ON email (seq) WHERE state = 'intended';
CREATE INDEX email_unknown ON email (environment_id, seq) WHERE state = 'unknown';

CREATE TABLE mail_stop (
  person_id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  stopped_at INTEGER NOT NULL
);
CREATE INDEX mail_stop_by_environment ON mail_stop (environment_id, stopped_at);
