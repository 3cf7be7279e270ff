"""The scratch server: an embedded PostgreSQL that tersql may do anything with."""
