"""Maintainers' commands; not part of the wheel."""
