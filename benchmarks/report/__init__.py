"""From lines of JSON to a table, a picture and a page."""
