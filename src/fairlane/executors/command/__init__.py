"""Runs programs: arguments from a template, a clean environment, limits, and a guard over it."""
