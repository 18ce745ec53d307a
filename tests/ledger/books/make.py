"""Makes the stored books of the schema that the code at hand writes: `python -m tests.ledger.books.make FOLDER`.

Run once for a schema, before the next one is thought of; what it wrote is never made again. The books of all schemas
lie beside this file: `schema_N.db` is a file of SQLite, `schema_N.sql` a dump of PostgreSQL with `books` as the name
of the schema, and `schema_N.json` what a reader must find in both: entries with their hashes, sums, answers, and
certificates. The identity of the ledger, the clock and the signing key are the same on every run.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet.charging.certificate import SigningKey, digest, loss_to_json
from discreet.charging.purchase import Bought, Counter, Purchase
from discreet.charging.signing_keys import Custody
from discreet.core.events import Gaussian, Laplace, Pure, to_json
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.units import Row, User
from discreet.ledger import Ledger
from discreet.ledger.stores.sqlite.store import SQLiteStore
from discreet.ledger.stores.store import Store
from discreet.noise.entropy import Entropy

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
HEALTH, FLU, ANN, BOB, SCHOOLS = (
    ("health",),
    ("health", "flu study"),
    ("health", "flu study", "ann"),
    ("health", "flu study", "bob"),
    ("schools",),
)
HALF = Fraction(1, 2)


class Clock:
    """One minute passes at each look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 17, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def certificate_1(counter: Counter, purchase: Purchase, bought: Bought) -> dict[str, Any]:
    """A certificate in the first format, in which the question had its spaces run together."""
    charge = bought.charge
    said = {
        "data": counter.account[0],
        "unit": {"kind": "user", **vars(counter.unit)},
        "question": " ".join(purchase.text.split()),
        "plan": purchase.plan,
        "events": [to_json(event) for event in purchase.events],
        "loss": loss_to_json(purchase.loss),
        "ledger": {"id": counter.ledger.id, "entry": charge.sequence, "hash": charge.hash, "time": charge.time},
        "answer": sha256(bought.payload).hexdigest(),
        "rows": digest(["n"], [[1234]]),
    }
    return counter.custody.key.sign(said)


def written(store: Store) -> dict[str, Any]:
    """Fills empty books; what a reader must find in them."""
    drawn = Entropy.for_tests(14)
    with patch("discreet.ledger.ledger.system", lambda: drawn), patch("discreet.ledger.charges.system", lambda: drawn):
        return _written(Ledger(store, clock=Clock()))


def _written(ledger: Ledger) -> dict[str, Any]:
    ledger.open(HEALTH, budget=ApproxDP(3, "1e-6"), unit=User("patient"), source="file:/data/visits.parquet")
    ledger.open(FLU, budget=ApproxDP(2, "1e-6"))
    ledger.open(ANN, budget=ApproxDP(1, "1e-6"))
    ledger.open(BOB, new=True)
    ledger.open(SCHOOLS, budget=PureDP(1), unit=Row(neighbours="replace"), source="sha256:5c00")
    ledger.open(("schools", "grades"), budget=ZCDP("0.5"))
    ledger.attach(HEALTH, "file:/data/labs.parquet", note="the laboratory, of the same patients")
    ledger.register(KEY.public)
    counter = Counter(ledger, ANN, ApproxDP(3, "1e-6"), User("patient"), Custody(KEY, Path("key"), None, ledger.id))
    count = Purchase(
        "SELECT COUNT(*) FROM visits, ε = 1/2",
        "SELECT COUNT(*)\nFROM visits",
        "Laplace noise; one group",
        (Laplace(Fraction(2), 1),),
        PureDP("0.5"),
    )
    bought = counter.charge_and_run(count, lambda: b"1234")
    certificate = certificate_1(counter, count, bought)
    ledger.complete(ledger.charge(BOB, [Gaussian(Fraction(40), 1)] * 3, "three sums", note="é, three"), b"\x00\xff7")
    ledger.charge(BOB, [Pure(Fraction(1, 8))], "charged and never answered")
    ledger.charge(("schools", "grades"), [Pure(Fraction(1, 4))], "how many pass?")
    ledger.complete(ledger.charge(SCHOOLS, [Pure(Fraction(1, 8))], "a run that failed"), b"failed")
    ledger.amend(HEALTH, ApproxDP(4, "1e-6"), note="a new consent")
    ledger.amend(BOB, ApproxDP("1.5", "1e-6"))
    return {
        "id": ledger.id,
        "entries": [[entry.text, entry.hash] for entry in ledger.entries()],
        "accounts": {
            "/".join(path): [str(s.budget), str(s.spent), str(s.remaining), str(s.used)]
            for path in ledger.accounts()
            for s in [ledger.standing(path)[-1]]
        },
        "sources": ledger.sources(),
        "answered": [
            [[*ANN], count.identity, [to_json(event) for event in count.events], b"1234".hex()],
            [[*BOB], "three sums", [to_json(Gaussian(Fraction(40), 1))] * 3, b"\x00\xff7".hex()],
            [[*SCHOOLS], "a run that failed", [to_json(Pure(Fraction(1, 8)))], b"failed".hex()],
        ],
        "unanswered": [
            [[*BOB], "charged and never answered", [to_json(Pure(Fraction(1, 8)))]],
            [["schools", "grades"], "how many pass?", [to_json(Pure(Fraction(1, 4)))]],
        ],
        "certificate": certificate,
    }


def main(folder: Path) -> None:
    from tests.ledger.servers import running

    from discreet.ledger.stores.postgres.store import PostgresStore
    from discreet.ledger.stores.schema import VERSION

    name = f"schema_{VERSION}"
    with TemporaryDirectory() as work:
        store = SQLiteStore(Path(work) / "books")
        expected = written(store)
        store.close()
        (folder / f"{name}.db").write_bytes((Path(work) / "books").read_bytes())
    server = running()
    shared = PostgresStore(server.url(), schema="books")
    assert written(shared) == expected
    shared.close()
    dump = [server._programs / "pg_dump", "--inserts", "--no-owner", "--schema=books", server.url()]
    text = subprocess.run(dump, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stdout
    lines = [line for line in text.splitlines() if line and not line.startswith(("--", "SET ", "\\", "SELECT "))]
    (folder / f"{name}.sql").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
