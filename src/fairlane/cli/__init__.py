"""The command line: a file a command group. What takes time to import is imported in commands."""
