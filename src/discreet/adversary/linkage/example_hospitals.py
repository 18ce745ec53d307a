"""Two hospitals and their patients: a table with names, the same table 2-anonymous, and one from across the street.

Zhao Lina is 56. The first hospital blurs ages and postcodes until nobody stands out, the second did so too; but a woman
between 50 and 60 who was a patient of both has the one illness that is in both tables.

>>> from discreet.adversary.linkage.anonymity import how_anonymous
>>> how_anonymous(FIRST_NAMED, ["age"]).k, how_anonymous(FIRST, ["age", "sex", "postcode"], "diagnosis").k
(1, 2)

The tables are 5.1 to 5.3 of the textbook chapter on data privacy that this demonstration follows, in English.
"""

from __future__ import annotations

__all__ = ["FIRST", "FIRST_NAMED", "KNOWN", "QUASI", "SECOND", "SENSITIVE"]

SENSITIVE = "diagnosis"
QUASI = ("age", "sex", "postcode")

_DIAGNOSES = ["heart disease", "arthritis", "lung cancer", "Crohn's disease", "lung cancer", "AIDS", "diabetes"]
_DIAGNOSES += ["allergic rhinitis", "ulcerative gastritis"]
_SEXES = ["M", "F", "M", "F", "M", "F", "M", "M", "F"]
_SMOKERS = ["yes", "no", "yes", "no", "yes", "no", "yes", "yes", "no"]

FIRST_NAMED = {
    "name": [
        *("Li Guoqiang", "Wang Xiuying", "Zhang Jianhua", "Chen Yulan", "Liu Zhiqiang"),
        *("Zhao Lina", "Zhou Zhicheng", "Ma Wenjie", "Li Mei"),
    ],
    "age": [64, 61, 67, 63, 69, 56, 52, 59, 55],
    "sex": _SEXES,
    "postcode": [190146, 190118, 190104, 190146, 190115, 190103, 190146, 190130, 190146],
    "smokes": _SMOKERS,
    SENSITIVE: _DIAGNOSES,
}
"""What the first hospital knows."""

FIRST = {
    "name": ["*"] * 9,
    "age": ["60-70"] * 5 + ["50-60"] * 4,
    "sex": _SEXES,
    "postcode": ["1901**"] * 9,
    "smokes": _SMOKERS,
    SENSITIVE: _DIAGNOSES,
}
"""What it publishes."""

SECOND = {
    "name": ["*"] * 6,
    "age": ["50-60"] * 3 + ["60-70"] * 3,
    "sex": ["F"] * 3 + ["M"] * 3,
    "postcode": ["1901**"] * 6,
    SENSITIVE: ["AIDS", "lupus", "Sjögren's syndrome", "pancreatic cancer", "cirrhosis", "gout"],
}
"""What the second hospital publishes."""

KNOWN = {"name": ["Zhao Lina"], "age": [56], "sex": ["F"], "postcode": [190103]}
"""What a neighbour knows of one patient of both."""
