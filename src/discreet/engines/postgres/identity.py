"""What the books know a table of PostgreSQL by: its server, its database, and its own name or number.

A server has an identifier that copies of it share and no address changes; a database and a table have numbers that stay
when they are renamed. A role that may not ask for the identifier has only the address by which it came, and a server
may have many: such a place is `nameless`, and no new books are begun by it.

>>> here = Place("7312", "hospital", 16384, frozenset({"hospital", "postgres"}))
>>> own = here.sources([("ward", "visits", 16391, True)])
>>> own
('postgres:7312/hospital/ward.visits', 'postgres:7312/hospital/16391', 'postgres:7312/16384/16391')
>>> here.aliases(own, ["postgres:7312/clinic/16391", "postgres:7312/postgres/16391"])
['postgres:7312/clinic/16391']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from discreet.core.errors import InvalidArgument
from discreet.engines.postgres.catalog import spelled

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """A database of a server; `databases` are the names of all that the server has."""

    server: str
    database: str
    number: int
    databases: frozenset[str]
    nameless: bool = False

    def __str__(self) -> str:
        return f"postgres:{self.server}/{spelled(self.database)}"

    def sources(self, origins: Sequence[tuple[str, str, int, bool]]) -> tuple[str, ...]:
        """Names of tables, by schema, name, number, and whether they are stored; then the numbers of those that are."""
        named = [f"{self}/{spelled(schema)}.{spelled(name)}" for schema, name, _, _ in origins]
        places = [str(self)] if self.nameless else [str(self), f"postgres:{self.server}/{self.number}"]
        return (*named, *(f"{place}/{number}" for place in places for _, _, number, stored in origins if stored))

    def check_named(self, table: str, own: Iterable[str], known: frozenset[str]) -> None:
        """That the server says which it is: by an address a table would have as many budgets as there are addresses.
        Books that were begun by an address go on."""
        if self.nameless and not known & {*own}:
            remedy = "GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO the role"
            raise InvalidArgument("table", table, "on a server that tells the role which server it is", remedy)

    def aliases(self, own: Iterable[str], known: Iterable[str]) -> list[str]:
        """Those of the sources in some books that are a table by another name, where none of them is its own.

        Books that were begun before a database was renamed have its old name; and those that were begun by a role that
        could not ask which server it was have an address instead.
        """
        texts = frozenset(known)
        if texts & {*own}:
            return []
        numbers = {last for text in own if (last := text.rpartition("/")[2]).isdigit()}
        numbered = [text.rpartition("/") for text in sorted(texts)]
        return ["/".join((place, last)) for place, _, last in numbered if last in numbers and self._is_called(place)]

    def _is_called(self, place: str) -> bool:
        """Whether a server and database in some books may be these: an identifier is a number, and an address none."""
        server, _, database = place.removeprefix("postgres:").rpartition("/")
        if not place.startswith("postgres:"):
            return False
        if server == self.server:
            return not database.isdigit() and database not in {spelled(name) for name in self.databases}
        return not server.isdigit() and not self.nameless and database == spelled(self.database)
