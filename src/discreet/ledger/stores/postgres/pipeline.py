"""Some statements in one message to a PostgreSQL server, and what each of them reads.

The server runs them one after another, each on what was committed when it begins, and stops at the first error. It
reads and plans each statement once for a connection, which is more than half of its work for one row. Values are
literals, which takes a third of the time of a cursor; they are whole numbers, texts, bytes or nothing, and the
connection has the settings by which these mean the same on every server (`stores/postgres/connection.py`).

>>> numbered("UPDATE head SET sequence = ?, hash = ?")
'UPDATE head SET sequence = $1, hash = $2'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from psycopg import errors, generators
from psycopg.pq import Escaping, ExecStatus
from psycopg.pq.abc import PGresult

from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores.postgres.connection import Connection

__all__ = ["COMMIT", "Statement", "exchange", "numbered"]

Statement = tuple[str, tuple[object, ...]]
"""With what its parameters stand for."""
COMMIT: Statement = ("COMMIT", ())
_PREPARE: Statement = ("PREPARE", ())
_WRITES = ("INSERT", "UPDATE")
_PLANNED = (*_WRITES, "SELECT", "WITH")
"""Other statements have neither parameters nor plans."""
_READ = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY}
_NUMBERS = (20, 21, 23)
_BYTES = 17


def exchange(connection: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
    """What each statement reads, nothing for those that do not.

    A COMMIT that took everything back is an error, and so is a row that was written and is not there: a trigger or a
    rule of somebody else made it vanish. So is a warning: a wait for the standby servers that was cancelled looks like
    success otherwise.
    """
    connection.doubts.clear()
    literal = Escaping(connection.pgconn).escape_literal
    names, message, sent = dict(connection.prepared), list[bytes](), list[Statement]()
    for statement in statements:
        text, values = statement
        if text.startswith(_PLANNED) and text not in names:
            # No name is given twice: of a message that failed nobody knows how much of it was done.
            connection.named += 1
            names[text] = f"discreet_{connection.named}"
            message.append(f"PREPARE {names[text]} AS {numbered(text)}".encode())
            sent.append(_PREPARE)
        message.append(_written(names.get(text), text, values, literal))
        sent.append(statement)
    connection.pgconn.send_query(b";".join(message))
    results = connection.wait(generators.execute(connection.pgconn))
    for result, statement in zip(results, sent, strict=False):
        if result.status not in _READ:
            raise errors.error_from_result(result, encoding="utf-8")
        if statement is COMMIT and result.command_status != b"COMMIT":
            raise LedgerUnavailable("the server took the transaction back", "ask again")
        if statement[0].startswith(_WRITES) and not result.command_tuples:
            raise LedgerDamaged(
                "the server did not write what it was told to", "check the ledger for triggers and rules"
            )
    connection.prepared = names
    if connection.doubts:
        raise LedgerUnavailable(
            f"the server has it, and not yet surely its standby ({connection.doubts[0]})",
            "ask the same again: it is paid for once",
        )
    return [_rows(result) for result, statement in zip(results, sent, strict=True) if statement is not _PREPARE]


@lru_cache(maxsize=1024)
def numbered(text: str) -> str:
    """The statement with numbers for its parameters."""
    first, *others = text.split("?")
    return first + "".join(f"${number}{rest}" for number, rest in enumerate(others, 1))


def _written(name: str | None, text: str, values: Sequence[object], literal: Callable[[bytes], Any]) -> bytes:
    if name is None:
        return text.encode()
    given = b", ".join(_literal(value, literal) for value in values)
    return b"EXECUTE %s(%s)" % (name.encode(), given) if values else b"EXECUTE %s" % name.encode()


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
