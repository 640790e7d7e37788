"""Somebody's own environment: what it is, what has to change in it, and the change, resumable and undone whole."""
