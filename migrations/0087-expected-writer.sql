-- Only PostgreSQL has several writers. SQLite has one.
SELECT 1;
