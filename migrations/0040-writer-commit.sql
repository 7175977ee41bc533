-- PostgreSQL's alone: there a commit is on the disk only some time after it is there. Here one answers for both.
SELECT 1;
