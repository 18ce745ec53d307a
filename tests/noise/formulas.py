"""The documented formula of Laplace and geometric draws, ⌊scale·(c − ln U)⌋, in high precision from the bits of U."""

from fractions import Fraction

from flint import arb, ctx, fmpz

from discreet.core.rounding import ball

PRECISION = 700


def offset(scale: Fraction, signed: bool) -> arb:
    """c = ln(2/(1+p)) for two sides, 0 for one."""
    return (2 / (1 + (-1 / ball(scale)).exp())).log() if signed else arb(0)


def magnitude(scale: Fraction, signed: bool, prefix: int, bits: int) -> int | None:
    """⌊scale·(c − ln U)⌋ if it is the same for all U that start with these bits, by itself and in high precision."""
    with ctx.workprec(PRECISION):
        if prefix == 0:
            return None
        unit = arb(fmpz(1) << bits)
        ends = [ball(scale) * (offset(scale, signed) - (arb(u) / unit).log()) for u in (prefix + 1, prefix)]
        whole = [max(0, int(end.mid().floor().fmpz())) for end in ends]
        assert all(end.rad() < arb(2) ** -200 for end in ends)
        return whole[0] if whole[0] == whole[1] else None


def boundary(scale: Fraction, signed: bool, k: int, bits: int = 63) -> int:
    """The first `bits` bits of the U at which the magnitude changes between k − 1 and k."""
    with ctx.workprec(PRECISION):
        u = (offset(scale, signed) - k / ball(scale)).exp()
        return int((u * arb(fmpz(1) << bits)).mid().floor().fmpz())
