"""The way from Python to the SQL core."""
