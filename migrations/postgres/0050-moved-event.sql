-- Blocks of events are SQLite's alone.
SELECT 1;
