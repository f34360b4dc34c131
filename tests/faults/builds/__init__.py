"""Builds that are broken on purpose, and the checks that must notice."""
