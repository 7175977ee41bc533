-- SQLite's index of events by their relay's name is in blocks from here on; this one stays as it is.
SELECT 1;
