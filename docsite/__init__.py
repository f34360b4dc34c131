"""Builds the site of docs/: what MkDocs is told besides mkdocs.yml, and the reference."""
