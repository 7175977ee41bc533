-- PostgreSQL's alone: here one server runs everything, and has nobody to be compared with.
SELECT 1;
