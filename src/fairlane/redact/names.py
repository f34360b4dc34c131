"""Names that members and variables with a secret commonly have."""

import re
from functools import lru_cache

LAST_WORDS = {
    *("password", "passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets"),
    *("token", "authorization", "cookie", "apikey", "apikeys", "credential", "credentials"),
}
LAST_TWO_WORDS = {
    f"{first} {second}"
    for first in ("api", "access", "secret", "private", "signing", "encryption", "account", "auth")
    for second in ("key", "keys")
} | {"amz signature", "goog signature", "sig"}
# Written in one: "pgpassword", "accesstoken".
ENDINGS = (
    *("password", "passwd", "passphrase", "secret", "apikey", "accesskey", "secretkey"),
    *(
        "accountkey",
        "privatekey",
        "accesstoken",
        "authtoken",
        "refreshtoken",
        "csrftoken",
        "sessiontoken",
    ),
)
# "next_page_token" is a place in a list, "max_token" a number.
HARMLESS_TOKENS = {
    *("page", "next", "previous", "continuation", "sync", "cursor", "resume", "start", "change"),
    *("delta", "max", "min"),
}

WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Does a member with this name hold a secret? `db_password`, `clientSecret`, `X-API-Key` do."""
    words = [word.lower() for word in WORD.findall(name[-80:])]
    if not words:
        return False
    if words[-1] == "token" and len(words) > 1 and words[-2] in HARMLESS_TOKENS:
        return False
    return (
        words[-1] in LAST_WORDS
        or words[-1].endswith(ENDINGS)
        or " ".join(words[-2:]) in LAST_TWO_WORDS
    )
