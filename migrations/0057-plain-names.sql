-- Private tables and columns get the names that the code uses. A rename changes no row, and SQLite changes triggers and conditions of indexes itself.
-- With this setting off, SQLite changes triggers too. Some systems' own SQLite has it on.
PRAGMA legacy_alter_table = OFF;

ALTER TABLE key_recent RENAME TO dedupe_log;
ALTER TABLE key_run RENAME TO dedupe_segment;
ALTER TABLE dedupe_segment RENAME COLUMN run TO segment;
ALTER TABLE dedupe_segment RENAME COLUMN pieces TO pages;
ALTER TABLE key_piece RENAME TO dedupe_page;

ALTER TABLE gone_secret RENAME TO retired_secret;
ALTER TABLE retired_secret RENAME COLUMN swept TO cursor;
DROP INDEX gone_secret_by_until;
CREATE INDEX retired_secret_by_until ON retired_secret (until);
ALTER TABLE ran_actions RENAME TO action_list;
ALTER TABLE event_clock_back RENAME TO clock_rollback;
ALTER TABLE recent_call RENAME TO recent_request;
ALTER TABLE unknown_call RENAME TO unknown_request;
ALTER TABLE record_watched RENAME TO past_record_watch;
DROP INDEX record_watched_by_until;
CREATE INDEX past_record_watch_by_until ON past_record_watch (until);

ALTER TABLE erasure RENAME COLUMN sought TO target;
ALTER TABLE relay RENAME COLUMN fruitless TO streaks;
ALTER TABLE event RENAME COLUMN came_by TO source;
DROP INDEX problem_by_standing;
CREATE INDEX problem_open ON problem (environment_id, id) WHERE cleared_at IS NULL;
DROP INDEX problem_standing;
CREATE UNIQUE INDEX problem_open_target ON problem (environment_id, code, target) WHERE cleared_at IS NULL;
