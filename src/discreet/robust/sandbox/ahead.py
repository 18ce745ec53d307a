"""What a worker imports before it forks: libraries of a fixed list, of those that a function names.

What a worker has not imported, each block that needs it imports for itself, behind its walls, in its own time and
memory. That is slow for large libraries, so the worker imports them once. But it does so in the process whose memory
all blocks begin with, and an analyst chooses what a function names. So the list is ours: libraries that do the same
whenever they are imported, and keep nothing of the machine that changes with what others do on it.

>>> loaded_ahead("pandas", b"")
['numpy', 'numpy.random', 'cloudpickle', 'pandas']
>>> import pickle
>>> loaded_ahead("numpy", pickle.dumps("scipy.stats._distn_infrastructure"))
['numpy', 'numpy.random', 'cloudpickle', 'scipy', 'scipy.stats']
>>> loaded_ahead("numpy", pickle.dumps("scipyesque")) == loaded_ahead("numpy", pickle.dumps("multiprocessing.heap"))
True
"""

from __future__ import annotations

__all__ = ["LIBRARIES", "loaded_ahead"]

_EVERYWHERE = ("numpy", "numpy.random", "cloudpickle")
_FORMS = {"pandas": ("pandas",), "arrow": ("pyarrow",)}
LIBRARIES = {
    "numpy": ("fft", "linalg", "ma", "polynomial"),
    "pandas": (),
    "polars": (),
    "pyarrow": ("compute",),
    "scipy": (
        *("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse"),
        *("sparse.linalg", "spatial", "spatial.distance", "special", "stats"),
    ),
    "sklearn": (
        *("cluster", "compose", "covariance", "decomposition", "discriminant_analysis", "ensemble"),
        *("feature_extraction", "feature_selection", "gaussian_process", "impute", "isotonic", "kernel_ridge"),
        *("linear_model", "manifold", "metrics", "mixture", "model_selection", "naive_bayes", "neighbors"),
        *("neural_network", "pipeline", "preprocessing", "svm", "tree"),
    ),
    "statsmodels": ("api", "formula.api", "stats.api", "tsa.api"),
}
"""Libraries, and their parts that are imported by themselves."""


def loaded_ahead(form: str, packed: bytes) -> list[str]:
    """For rows in this form, and for a function that is these bytes."""
    named = [*_EVERYWHERE, *_FORMS.get(form, ())]
    for library, parts in LIBRARIES.items():
        # So little is looked for, and so simply, that any function is read in time; what is in a text does no harm.
        if library.encode() in packed:
            wanted = (library, *(f"{library}.{part}" for part in parts))
            named += [name for name in wanted if _is_named(name, packed)]
    return [*dict.fromkeys(named)]


def _is_named(name: str, packed: bytes) -> bool:
    """Whether there is a text that is this name, or goes on after it with a part of it."""
    whole = b"\x8c" + bytes([len(name)]) + name.encode()
    return whole in packed or name.encode() + b"." in packed
