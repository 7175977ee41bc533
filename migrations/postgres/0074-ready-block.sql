-- SQLite's index of due events is in blocks from here on; this one stays as it is.
SELECT 1;
