"""Checks that turn gathered facts into findings with a fix."""
