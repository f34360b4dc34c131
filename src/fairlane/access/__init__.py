"""Who may do what: tokens, OpenID Connect, roles, and the database role that row security binds."""
