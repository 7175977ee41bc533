-- By how much the time of an event may be before that of the event with the number before, without a note in clock_rollback. Here one writer gives
-- numbers as events come. On PostgreSQL the writers of two environments give numbers at the same time, each after a wait.
CREATE VIEW event_time_step AS SELECT 2000 AS ms;
