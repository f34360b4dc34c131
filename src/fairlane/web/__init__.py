"""The web pages: server-rendered, live, for tenants' people and operators. See docs/web.md."""
