"""What a secret looks like in the address of a server, and texts without it.

Who gives the address of data or books may write a password into it, in any of the spellings that drivers take: in a URL
in letters of any case, after a space, behind `jdbc:`, as an option, as words of a connection, in a list of those, as a
key of a cloud. **Every message, repr and stored text about a place goes through `redacted`**: errors do so where they
are made (`errors.py`). A place that looks like an address and is none that we know is refused before anything is made
of it (`errors.known_place`), or its secret would be the name of a file, a data set or a table.

**A text is read in a time that grows with its length alone**, whatever it holds, for an analyst writes what a message
repeats. Words are looked for first: what stands before one stays, and is never searched. After a word, or inside
quotes, a name has a bounded length, so that each place is tried as the part of a bounded number of names; a value is
read once, to its end, and nothing is asked for after it. Where a user and a password may end at any later @, a run
without spaces is cut once, at its last one (`_without_users`), not tried from each place where an address may begin.

>>> redacted("POSTGRESQL://ann:se@cret@books.example/ledger?sslpassword=x&connect_timeout=9")
'POSTGRESQL://…@books.example/ledger?sslpassword=…&connect_timeout=9'
>>> redacted("host=books user=ann password='it\\\\'s secret' dbname=x"), redacted("md:?motherduck_token=abc")
('host=books user=ann password=… dbname=x', 'md:?motherduck_token=…')
>>> known_scheme("  PostgreSQL://ann@data.example/x")
'postgresql://ann@data.example/x'
"""

from __future__ import annotations

import re

__all__ = ["HIDDEN", "address_kind", "holds_secret", "known_scheme", "looks_like_login"]
__all__ += ["redacted", "server_of"]

HIDDEN = "…"
_WORDS = (
    r"password|passwd|passphrase|secret|token|credential|(?:api|account|access|shared|private|encryption)[._-]?key"
    r"|requirepass|scram_(?:client|server)_key|\bx-(?:amz|goog)-signature|(?<![a-z0-9])(?:pass|pwd|pw|sig|sas)(?![a-z0-9])"
)
_BEFORE, _AFTER = 40, 60
"""So many characters a name may have before a word and after it."""
_LEFT = rf"[\w.\-]{{0,{_AFTER}}}+"
_NAME = rf"(?=[\w.\-]{{0,{_BEFORE}}}?(?:{_WORDS}))[\w.\-]{{1,{_BEFORE + _AFTER + 20}}}+"
_END = r"(?:\s|&[\w.%\-]{1,40}=)"
"""Where a value without quotes ends: at a space, or at the next option of a URL. Whatever else stands in it, drivers
take for a part of it; what is hidden too much of a sentence is no loss. So a quote after any number of backslashes is
taken for one within the value: a text that was quoted itself has twice as many."""
_VALUE = rf"""(?:\\?"(?:[^"\\]|\\++.)*(?:"|\Z)|\\?'(?:[^'\\]|\\++.)*(?:'|\Z)|(?:\\{{1,2}}\s|(?!{_END}).)+)"""
_BLANK = r"(?:\s|\\{1,2}(?:[tnrfv]|x0[bcBC]))"
"""A blank, as it is or as it shows itself inside quotes."""
_OPTION = re.compile(rf"((?:{_WORDS}){_LEFT}{_BLANK}*+(?:=|%3[dD]){_BLANK}*+){_VALUE}", re.I)
"""`password=…`, with or without quotes, however it is prefixed."""
_PAIR = re.compile(rf"""((['"]){_NAME}\2\s*+[:,]\s*+)({_VALUE})""", re.I)
"""`'password': '…'` and `'password', '…'`, as records and lists show themselves."""
_ENCODED = re.compile(r"%(3[aA]|2[dDeE]|5[fF]|[46][1-9a-fA-F]|[57][0-9aA])")
"""A letter, a colon, a dot, a hyphen or an underscore, as URLs may spell them."""
_RUN = re.compile(r"\S+")
_USER = re.compile(r"[A-Za-z0-9+.\-]:/{1,2}")
"""`scheme://user:password@`; a password that was not encoded may hold anything but spaces."""
_SPACED = re.compile(r"([A-Za-z0-9+.\-]:/{1,2}+)[^\s/:@]{1,100}+:(?!\d{1,5}(?!\w))[^\r\n]{1,300}(?=@[\w.\-\[])")
"""`scheme://user:password@` with spaces in the password, which no driver takes and people write all the same."""
_BARE = re.compile(r"""(?<![^\s/'"\\=(\[])[^\s/:@'"=]{1,60}+:[^\s/\\@]""")
"""`user:password@host`, where the scheme was left out or mistyped."""
_HOST = re.compile(r"@(?=[\w.\-\[])")
_BEARER = re.compile(r"(\bbearer\s+)[A-Za-z0-9._~+/=\-]+", re.I)
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)
_PORT = re.compile(r"""(:/{1,2}+[^\s/@:\[\]'"]{1,100}+:)(?!\d{1,5}(?!\w))[^\s/@?#'"]+""")
"""`scheme://user:password`, where the host was forgotten: no port is called so."""
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")
_WITHOUT_SLASHES = ("jdbc", "md", "motherduck")
_LOGIN = re.compile(r"[^/:@]{1,60}:[^/@][^@]*@[\w.\-\[]")
_WORD = re.compile(r"\s*([A-Za-z_]{2,40})\s*=")
_KEYWORDS = re.compile(
    r"(?:ssl|gss|keepalives|oauth_|scram_)[a-z_]*|"
    r"application_name|authtype|channel_binding|client_encoding|connect_timeout|dbname|"
    r"fallback_application_name|host|hostaddr|krbsrvname|load_balance_hosts|max_protocol_version|"
    r"min_protocol_version|options|passfile|passwd|password|port|replication|require_auth|"
    r"requirepeer|requiressl|service|servicefile|target_session_attrs|tcp_user_timeout|tty|user"
)
"""What libpq, the driver of PostgreSQL, knows as words of a connection, and what people write for them."""
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.\-]+):")


def redacted(text: str) -> str:
    """The text with everything in it that looks like a secret, and the names of users beside it, left out."""
    # Drivers decode names and users first.
    decoded = _ENCODED.sub(lambda encoded: chr(int(encoded[1], 16)), text)
    hidden = _without_secrets(decoded)
    return text if hidden == decoded else hidden


def _without_secrets(text: str) -> str:
    text = _PEM.sub(HIDDEN, text)
    # Options first: what is left of one after its @ would be taken for the name of a host.
    text = _OPTION.sub(rf"\1{HIDDEN}", _PAIR.sub(rf"\1{HIDDEN}", text))
    text = _PORT.sub(rf"\1{HIDDEN}", _RUN.sub(_without_users, _SPACED.sub(rf"\1{HIDDEN}", text)))
    return _KEY_ID.sub(HIDDEN, _BEARER.sub(rf"\1{HIDDEN}", text))


def _without_users(run: re.Match[str]) -> str:
    """A run of characters without spaces, without the user and password before its last @."""
    text = run[0]
    last = text.rfind("@")
    if last < 0:
        return text
    user = _USER.search(text, 0, last)
    if user is not None:
        text = f"{text[: user.end()]}{HIDDEN}{text[last:]}"
    ends = [found.start() for found in _HOST.finditer(text)]
    bare = _BARE.search(text, 0, ends[-1]) if ends else None
    return text if bare is None else f"{text[: bare.start()]}{HIDDEN}{text[ends[-1] :]}"


def server_of(address: str) -> str:
    """Of the URL of a server its place alone, without user, password and options; nothing where an @ in what looks like
    options leaves open where a password ends."""
    place = _OPTION.sub(rf"\1{HIDDEN}", address.strip()).partition("://")[2]
    if "@" in "".join(re.split(r"[?#]", place)[1:]):
        return HIDDEN
    return re.split(r"[?#]", place.rpartition("@")[2])[0]


def holds_secret(text: str) -> bool:
    """Whether something in the text looks like a secret; a user's name alone does not."""
    without_users = re.sub(r"(:/{1,2})[^:/\s@=;?&]*@", r"\1", text)
    return redacted(without_users) != without_users


def looks_like_login(text: str) -> bool:
    """Whether a name of a file is rather the login of a server: it holds a secret, or begins as user:password@host
    does, where a password may have spaces in it."""
    return holds_secret(text) or _LOGIN.match(text) is not None


def address_kind(text: str) -> str | None:
    """What a text is an address of: its scheme in small letters, or "words" of a connection; None for a path."""
    scheme = _SCHEME.match(text)
    if scheme is not None and (text[scheme.end() :].startswith("/") or scheme[1].lower() in _WITHOUT_SLASHES):
        return scheme[1].lower()
    word = _WORD.match(text)
    return "words" if word is not None and _KEYWORDS.fullmatch(word[1].lower()) else None


def known_scheme(text: str) -> str:
    """An address without outer spaces, its scheme in small letters, as drivers want it; a path as it is."""
    kind = address_kind(text)
    if kind is None:
        return text
    return text.strip() if kind == "words" else kind + text.strip()[len(kind) :]
