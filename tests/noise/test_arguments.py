"""Sizes and bad input: any shape in bounded memory, and what cannot be drawn is refused before a word is."""

import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.noise.spies import Counted
from tests.soak import whole_or_share

from discreet import InvalidArgument
from discreet.noise import (
    Grid,
    bernoulli,
    bernoulli_exp,
    categorical,
    discrete_gaussian,
    discrete_laplace,
    discrete_staircase,
    gaussian,
    geometric,
    gibbs,
    heads,
    optimal_inner,
    permutation,
    uniform,
)

# Each sampler with plain arguments, to be called with a size and a source.
SIZED: dict[str, Callable[..., np.ndarray]] = {
    "discrete_laplace": lambda size, **how: discrete_laplace(1000, size, **how),
    "discrete_laplace, split": lambda size, **how: discrete_laplace(2**45, size, **how),
    "geometric": lambda size, **how: geometric("3.7", size, **how),
    "discrete_gaussian": lambda size, **how: discrete_gaussian(1000, size, **how),
    "discrete_gaussian, narrow": lambda size, **how: discrete_gaussian("0.5", size, **how),
    "discrete_gaussian, wide": lambda size, **how: discrete_gaussian(2**60, size, **how),
    "discrete_staircase": lambda size, **how: discrete_staircase(1, 10, 4, size, **how),
    "bernoulli": lambda size, **how: bernoulli("1/3", size, **how),
    "bernoulli_exp": lambda size, **how: bernoulli_exp("1/3", size, **how),
    "uniform": lambda size, **how: uniform(1000, size, **how),
    "categorical": lambda size, **how: categorical([1, 0, 6, 3], size, **how),
    "categorical, large": lambda size, **how: categorical([10**30, 3], size, **how),
    "gibbs": lambda size, **how: gibbs(np.array([5, 1, 9]), "1/3", size, **how),
}
sized = pytest.mark.parametrize("draw", SIZED.values(), ids=SIZED)


@sized
def test_any_shape_is_drawn(draw: Callable[..., np.ndarray]) -> None:
    for size, shape in (
        (0, (0,)),
        ((), ()),
        (None, ()),
        (1, (1,)),
        ((3, 0), (3, 0)),
        ((2, 3, 4), (2, 3, 4)),
        ([5, 1], (5, 1)),
        (np.int64(7), (7,)),
        (300, (300,)),
    ):
        out = draw(size)
        assert isinstance(out, np.ndarray)
        assert out.shape == shape
        assert out.dtype in (np.int64, np.bool_)
        assert out.flags.c_contiguous


@sized
def test_nothing_is_drawn_for_nothing(draw: Callable[..., np.ndarray]) -> None:
    source = Counted()
    for size in (0, (3, 0), (0, 5)):
        draw(size, entropy=source)
    assert source.handed_out == 0


@sized
def test_a_shape_is_filled_in_order(draw: Callable[..., np.ndarray]) -> None:
    flat = draw(600, entropy=Counted(seed=1))
    assert (draw((20, 30), entropy=Counted(seed=1)).ravel() == flat).all()


@sized
@pytest.mark.parametrize(
    "size",
    [-1, (2, -1), 1.5, "3", True, (1, True), np.nan, 2**41, (2**30, 2**30), 2**70, (2**40, 2**40, 0), (1,) * 70, [[1]]],
    ids=str,
)
def test_sizes_that_make_no_sense_are_refused(draw: Callable[..., np.ndarray], size: Any) -> None:
    source = Counted()
    with pytest.raises(InvalidArgument) as raised:
        draw(size, entropy=source)
    assert raised.value.argument == "size"
    assert source.handed_out == 0


def test_a_size_that_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    source = Counted()
    monkeypatch.setattr("discreet.noise.batches.np.empty", full)
    with pytest.raises(InvalidArgument, match="fits in memory"):
        discrete_laplace(1, 10**6, entropy=source)
    assert source.handed_out == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SIZED if name != "categorical, large"])
def test_many_draws_take_little_more_memory_than_they_fill(name: str) -> None:
    draw = SIZED[name]
    draw(1000)
    tracemalloc.start()
    try:
        out = draw(whole_or_share(10**7, 4 * 10**6))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= out.nbytes + 32 * 2**20


NOT_NUMBERS: list[Any] = [
    None,
    "junk",
    "nan",
    "inf",
    "",
    "1/0",
    True,
    np.True_,
    1 + 2j,
    [1],
    np.array([1.0, 2.0]),
    np.array(3),
    object(),
    float("nan"),
    np.float64("nan"),
    float("inf"),
    -np.inf,
    Decimal("NaN"),
    Decimal("Infinity"),
]
NOT_POSITIVE: list[Any] = [0, -1, -0.0, "-0.5", Fraction(-1, 3)]
NOT_WHOLE: list[Any] = [None, "3", 1.0, 2.5, True, Fraction(3), float("nan"), [1], np.array([1, 2]), 1j]
BEYOND = [Fraction(1, 2**61), 2**61, 1e-20, 1e30, 5e-324]

SCALE = NOT_NUMBERS + NOT_POSITIVE + BEYOND

BAD: list[tuple[str, str, Callable[..., Any], list[Any]]] = [
    ("discrete_laplace", "scale", lambda x, e: discrete_laplace(x, 3, entropy=e), SCALE),
    ("geometric", "scale", lambda x, e: geometric(x, 3, entropy=e), SCALE),
    ("discrete_gaussian", "sigma", lambda x, e: discrete_gaussian(x, 3, entropy=e), SCALE),
    ("staircase", "epsilon", lambda x, e: discrete_staircase(x, 5, 2, 3, entropy=e), SCALE),
    ("staircase", "sensitivity", lambda x, e: discrete_staircase(1, x, 1, entropy=e), [*NOT_WHOLE, 0, -1, 2**61]),
    ("staircase", "inner", lambda x, e: discrete_staircase(1, 5, x, entropy=e), [*NOT_WHOLE, 0, -1, 6, 2**70]),
    ("optimal_inner", "epsilon", lambda x, e: optimal_inner(x, 5), SCALE),
    ("optimal_inner", "sensitivity", lambda x, e: optimal_inner(1, x), [*NOT_WHOLE, 0, -1, 2**61]),
    ("bernoulli", "p", lambda x, e: bernoulli(x, 3, entropy=e), [*NOT_NUMBERS, -1, 2, "1.0001", 1 + 1e-15, -5e-324]),
    ("bernoulli_exp", "x", lambda x, e: bernoulli_exp(x, 3, entropy=e), [*NOT_NUMBERS, -1, -5e-324]),
    ("uniform", "below", lambda x, e: uniform(x, 3, entropy=e), [*NOT_WHOLE, 0, -1, 2**63 + 1]),
    ("permutation", "length", lambda x, e: permutation(x, entropy=e), [*NOT_WHOLE, -1, 2**33]),
    (
        "categorical",
        "weights",
        lambda x, e: categorical(x, 3, entropy=e),
        [None, 5, [], [0, 0], [1, -1], [1.5], ["1"], [True, 1], [float("nan")], [None], "12", [[1], [2]], [1j]],
    ),
    ("gibbs", "rate", lambda x, e: gibbs(np.array([1, 2]), x, entropy=e), [*NOT_NUMBERS, -1, -5e-324]),
    ("heads", "rate", lambda x, e: heads(np.array([1, 2]), x, entropy=e), [*NOT_NUMBERS, -1, -5e-324]),
    *(
        (
            choice.__name__,
            "scores",
            lambda x, e, choice=choice: choice(x, 1, entropy=e),
            [None, 5, [], [1.5], np.array([[1, 2]]), ["a"], [None], [[1], [1, 2]], np.array([True]), [1j], [2**70]],
        )
        for choice in (gibbs, heads)
    ),
    ("Grid", "exponent", lambda x, e: Grid(x), [*NOT_WHOLE, -1001, 961]),
    ("Grid.finer_than", "length", lambda x, e: Grid.finer_than(x, 4), NOT_NUMBERS + NOT_POSITIVE),
    ("Grid.finer_than", "steps", lambda x, e: Grid.finer_than(1, x), [*NOT_WHOLE, 0, -4]),
    ("Grid.spanning", "length", lambda x, e: Grid(0).spanning(x), [*NOT_NUMBERS, -1]),
    ("Grid.round", "value", lambda x, e: Grid(0).round(x), NOT_NUMBERS),
    ("Grid.steps", "values", lambda x, e: Grid(0).steps(x), ["a", [None], [1j], [b"x"], np.longdouble(1), [2**70]]),
    ("Grid.values", "steps", lambda x, e: Grid(0).values(x), ["a", None, [1.5], [True], [1j]]),
]


@pytest.mark.parametrize(("argument", "call", "values"), [b[1:] for b in BAD], ids=[f"{b[0]}({b[1]})" for b in BAD])
def test_bad_input_is_named_and_nothing_is_drawn(argument: str, call: Callable[..., Any], values: list[Any]) -> None:
    source = Counted()
    for value in values:
        with pytest.raises(InvalidArgument) as raised:
            call(value, source)
        error = raised.value
        assert error.argument == argument, value
        assert error.bound
        assert error.remedy
        assert f"{argument}=" in str(error)
        assert isinstance(error, ValueError)
    assert source.handed_out == 0


def test_errors_show_no_score_and_no_weight() -> None:
    secret = 987654321
    for call in (
        lambda: gibbs(np.array([secret, 0.5]), 1),
        lambda: heads([[secret], [1, 2]], 1),
        lambda: categorical([secret, -secret]),
        lambda: categorical([secret, 0.5]),
        lambda: Grid(0).steps(np.array(["987654321"])),
    ):
        with pytest.raises(InvalidArgument) as raised:
            call()
        assert str(secret) not in str(raised.value)


@pytest.mark.parametrize("scale", [Fraction(1, 2**60), 2**60, "1e-6", Decimal("0.1"), 0.1, np.float32(0.5), np.int8(3)])
def test_every_exact_number_in_range_is_taken(scale: Any) -> None:
    for sample in (discrete_laplace, geometric, discrete_gaussian):
        assert sample(scale, 300).shape == (300,)


def test_noise_raises_no_warning_whatever_numpy_is_told() -> None:
    gaussian._table.cache_clear()
    with np.errstate(all="raise"):
        for draw in SIZED.values():
            draw(2000)
        discrete_laplace("1e-6", 2000)
        for size in (3, 2000):
            discrete_gaussian("1e-6", size)
        gibbs(np.array([0, 10**18]), 1, 100)
        heads(np.array([0, 10**18]), 1)
        Grid(-1000).steps(np.array([1e300, -1e300, np.nan, np.inf, 5e-324]))
        Grid(900).steps(np.array([1e-300, 5e-324]))
