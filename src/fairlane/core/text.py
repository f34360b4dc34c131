"""Text as PostgreSQL can keep it."""


def storable(text: str) -> str:
    """An error that cannot be written down would leave its job running for ever."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
