-- PostgreSQL's alone: here one server counts its limits in memory.
SELECT 1;
