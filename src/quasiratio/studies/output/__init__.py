"""Numbers, tables and figures of a study, and their provenance."""
