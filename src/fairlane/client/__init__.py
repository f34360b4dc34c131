"""How a program speaks to the database: with its own connections, or through the caller's."""
