"""Some statements in one message to a PostgreSQL server, and what each of them reads.

The server runs them one after another, each on what was committed when it begins, and stops at the first error. Values
are written into the text as literals, which takes a third of the time of a cursor; they are whole numbers, texts, bytes
or nothing, and the connection has the settings by which these mean the same on every server (`server.py`).

>>> parts("SELECT text FROM entries WHERE sequence = ?")
('SELECT text FROM entries WHERE sequence = ', '')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from psycopg import errors, generators
from psycopg.pq import Escaping, ExecStatus
from psycopg.pq.abc import PGresult

from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.server import Connection

__all__ = ["COMMIT", "Statement", "exchange", "parts"]

Statement = tuple[str, tuple[object, ...]]
"""With what its parameters stand for."""
COMMIT: Statement = ("COMMIT", ())
_WRITES = ("INSERT", "UPDATE")
_READ = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY}
_NUMBERS = (20, 21, 23)
_BYTES = 17


def exchange(connection: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
    """What each statement reads, nothing for those that do not.

    A COMMIT that took everything back is an error, and so is a row that was written and is not there: a trigger or a
    rule of somebody else made it vanish.
    """
    literal = Escaping(connection.pgconn).escape_literal
    connection.pgconn.send_query(b";".join(_written(text, values, literal) for text, values in statements))
    results = connection.wait(generators.execute(connection.pgconn))
    for result, statement in zip(results, statements, strict=False):
        if result.status not in _READ:
            raise errors.error_from_result(result, encoding="utf-8")
        if statement is COMMIT and result.command_status != b"COMMIT":
            raise LedgerUnavailable("the server took the transaction back", "ask again")
        if statement[0].startswith(_WRITES) and not result.command_tuples:
            raise LedgerDamaged(
                "the server did not write what it was told to", "check the ledger for triggers and rules"
            )
    return [_rows(result) for result in results]


@lru_cache(maxsize=1024)
def parts(text: str) -> tuple[str, ...]:
    """The text before, between and after the parameters."""
    return tuple(text.split("?"))


def _written(text: str, values: Sequence[object], literal: Callable[[bytes], Any]) -> bytes:
    first, *others = parts(text)
    pieces = [first.encode()]
    for value, rest in zip(values, others, strict=True):
        pieces += [_literal(value, literal), rest.encode()]
    return b"".join(pieces)


def _literal(value: object, literal: Callable[[bytes], Any]) -> bytes:
    match value:
        case None:
            return b"NULL"
        case int():
            return b"%d" % value
        case bytes():
            return b"'\\x%s'" % value.hex().encode()
        case _:
            return bytes(literal(str(value).encode()))


def _rows(result: PGresult) -> list[Any]:
    readers = [_READERS.get(result.ftype(column), bytes.decode) for column in range(result.nfields)]
    return [
        tuple(None if (v := result.get_value(row, column)) is None else read(v) for column, read in enumerate(readers))
        for row in range(result.ntuples)
    ]


def _bytes(value: bytes) -> bytes:
    return bytes.fromhex(value[2:].decode())


_READERS: dict[int, Callable[[bytes], Any]] = {**dict.fromkeys(_NUMBERS, int), _BYTES: _bytes}
