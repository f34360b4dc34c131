"""Forms made in Python: out of a JSON Schema, and back into JSON, with each fault at its field."""
