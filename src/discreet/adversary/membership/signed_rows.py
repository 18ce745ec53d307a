"""Data that no efficient synthesizer can make private and useful: rows are signed messages.

Every row of a data set is (verification key, message, signature), all under one key whose secret half is thrown away.
The queries (i, b), two for each bit of a key, ask which share of the rows is a valid signature under a key whose bit i
is b. On the data the answers are 1 or 0. Synthetic rows that answer them within ½ hold a valid row; making one that is
not in the data would be a forgery. So whoever verifies rows reads people off any useful synthetic data (Dwork, Naor,
Reingold, Rothblum and Vadhan 2009; here with Ed25519, whose signatures cannot be altered into others either).

>>> data = SignedData.generate(20)
>>> copied = data.rows[:5]
>>> found = data.trace(copied)
>>> found.useful, found.exposed, found.forged
(True, 5, 0)
>>> data.trace(shuffled(copied)).verdict
'HELD: none of 5 synthetic rows is valid, and so they are useless: the worst of 512 queries is off by 1.'

Noisy counts of the same queries can be published privately: `noisy_answers` is accurate from ten thousand rows on.
That synthetic rows are impossible where counts are easy is what the construction shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.figures import bars
from discreet.adversary.findings import Finding
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive
from discreet.noise.entropy import Entropy
from discreet.noise.laplace import discrete_laplace
from discreet.noise.uniform import permutation, uniform

__all__ = ["Sanitization", "SignedData", "SignedRow", "noisy_answers", "recombined", "shuffled"]

MESSAGE = 32
BITS = 256
"""Of a key."""

Doubles = NDArray[np.float64]


class SignedRow(NamedTuple):
    """One record."""

    key: bytes
    message: bytes
    signature: bytes

    @property
    def valid(self) -> bool:
        """Whether the signature is one of the message under the key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(self.signature, self.message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True)
class Sanitization(Finding):
    """What synthetic rows are good for, and what they give away."""

    synthetic: int
    valid: tuple[SignedRow, ...] = field(repr=False)
    """Rows that anybody can check to be real."""
    exposed: int
    """Different rows of the data among them."""
    forged: int
    """Valid rows that are not in the data; finding one would break the signatures."""
    worst: float
    """How far off the worst query is."""

    @property
    def useful(self) -> bool:
        """Whether every query is answered within ½."""
        return self.worst < 0.5

    @property
    def verdict(self) -> str:
        """In plain words."""
        many = f"of {self.synthetic:,} synthetic rows"
        good = "useful" if self.useful else "useless"
        off = f"the worst of {2 * BITS} queries is off by {self.worst:.3g}"
        if not self.exposed:
            return f"HELD: none {many} is valid, and so they are {good}: {off}."
        return f"BROKEN: {len(self.valid):,} {many} are valid and name {self.exposed:,} people; they are {good}: {off}."

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        found = {name: getattr(self, name) for name in ("synthetic", "exposed", "forged", "worst", "useful")}
        return found | {"valid": len(self.valid)}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        return [
            ("synthetic rows", f"{self.synthetic:,}, of which {len(self.valid):,} are valid"),
            ("people exposed", f"{self.exposed:,}"),
            ("forged", f"{self.forged:,}"),
        ]

    def plot(self) -> Any:
        """Valid rows among the synthetic ones."""
        shares = {"valid": len(self.valid) / self.synthetic, "not valid": 1 - len(self.valid) / self.synthetic}
        return bars(shares, self.verdict, "synthetic rows", percent=True)

    def secrets(self) -> dict[str, Any]:
        """The rows of people."""
        return {"messages": [row.message.hex() for row in self.valid]}


@dataclass(frozen=True)
class SignedData:
    """n rows under one key."""

    rows: tuple[SignedRow, ...] = field(repr=False)

    @classmethod
    def generate(cls, people: int, progress: Callable[[float], None] | None = None) -> SignedData:
        """Random messages, signed; the key that signs is forgotten."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        n, secret = natural("people", people), Ed25519PrivateKey.generate()
        key = secret.public_key().public_bytes_raw()
        rows = []
        for done, drawn in enumerate(uniform(256, (n, MESSAGE)).astype(np.uint8)):
            message = drawn.tobytes()
            rows.append(SignedRow(key, message, secret.sign(message)))
            if progress is not None and done % 256 == 0:
                progress(done / n)
        return cls(tuple(rows))

    @property
    def key(self) -> bytes:
        """Under which all rows are signed."""
        return self.rows[0].key

    def trace(self, synthetic: Sequence[SignedRow], progress: Callable[[float], None] | None = None) -> Sanitization:
        """Check every synthetic row; what is valid is a person of the data."""
        if not synthetic:
            raise InvalidArgument("synthetic", "no rows", "one row or more", "give what a synthesizer made")
        valid = []
        for done, row in enumerate(synthetic):
            if SignedRow(*row).valid:
                valid.append(SignedRow(*row))
            if progress is not None and done % 256 == 0:
                progress(done / len(synthetic))
        ours = frozenset(self.rows)
        seen = set(valid)
        off = np.abs(_answers(valid, len(synthetic)) - _answers(self.rows[:1], 1))
        return Sanitization(len(synthetic), tuple(valid), len(seen & ours), len(seen - ours), float(off.max()))


def noisy_answers(data: SignedData, epsilon: Exactable, *, test_entropy: Entropy | None = None) -> Doubles:
    """The answers of all 512 queries, private: one row replaced moves each by 1, so noise of scale 512/ε."""
    counts = np.rint(_answers(data.rows, len(data.rows)) * len(data.rows)).astype(np.int64)
    noise = discrete_laplace(Fraction(2 * BITS) / positive("epsilon", epsilon), counts.size, entropy=test_entropy)
    return np.asarray((counts + noise) / len(data.rows), np.float64)


def shuffled(rows: Sequence[SignedRow], *, test_entropy: Entropy | None = None) -> list[SignedRow]:
    """A synthesizer that keeps every column as it is and tears rows apart: messages get the signatures of others."""
    order = permutation(len(rows), entropy=test_entropy)
    turned = np.roll(order, 1)
    pairs = zip(order.tolist(), turned.tolist(), strict=True)
    return [SignedRow(rows[a].key, rows[a].message, rows[b].signature) for a, b in pairs]


def recombined(rows: Sequence[SignedRow], many: int, *, test_entropy: Entropy | None = None) -> list[SignedRow]:
    """A synthesizer that draws every bit by its mean over the rows, as one does who keeps all one-way marginals."""
    table = np.array([list(row.message + row.signature) for row in rows], np.uint8)
    bits = np.unpackbits(table, axis=1)
    drawn = uniform(len(rows), (natural("many", many), bits.shape[1]), entropy=test_entropy)
    fresh = np.packbits(np.take_along_axis(bits, drawn, axis=0), axis=1)
    return [SignedRow(rows[0].key, bytes(row[:MESSAGE]), bytes(row[MESSAGE:])) for row in fresh]


def _answers(valid: Sequence[SignedRow], rows: int) -> Doubles:
    """The share of rows that are valid under a key with bit i equal to b, for all i and b."""
    if not valid:
        return np.zeros(2 * BITS)
    bits = np.unpackbits(np.array([list(row.key) for row in valid], np.uint8), axis=1)
    ones = bits.sum(axis=0, dtype=np.float64)
    return np.concatenate([len(valid) - ones, ones]) / rows
