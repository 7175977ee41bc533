-- The result of the mail with a member's one-time link. NULL: the link was not mailed.
ALTER TABLE signin_link ADD COLUMN mail_state text COLLATE "C" CHECK (mail_state IN ('sent', 'failed', 'unknown'));
-- One sentence that says why the mail was not sent, or why that is unknown.
ALTER TABLE signin_link ADD COLUMN mail_message text COLLATE "C";
