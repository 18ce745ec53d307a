"""Questions whose identities must never change: stored answers are found by them."""

from fractions import Fraction

from discreet.core.domains import Bounds, Categories
from discreet.core.losses import ApproxDP, PureDP
from discreet.sql.catalog import Catalog, Column, Table

_COLUMNS = (
    Column("who", "integer"),
    Column("city", "text", values=Categories(("Ulm", "Trier", "Köln"))),
    Column("street", "text"),
    Column("age", "integer", Bounds(0, 110)),
    Column("cost", "real", Bounds(0, 5000)),
    Column("grade", "integer", Bounds(1, 4), Categories((1, 2, 3, 4))),
    Column("day", "date"),
)
_BEDS = Column("beds", "integer", Bounds(0, 900))
_SITES = Table("sites", (Column("town", "text"), _BEDS), private=False, unique=("town",))
CATALOGS = {
    "people": Catalog((Table("visits", _COLUMNS, "who"), _SITES)),
    "few": Catalog((Table("visits", _COLUMNS, "who", max_rows=3), _SITES)),
    "rows": Catalog((Table("visits", _COLUMNS), _SITES)),
}
BUDGETS = {"approximate": ApproxDP(3, "1e-6"), "pure": PureDP(3)}
SOURCES = {"sites": "file:/data/sites.csv"}
EPSILONS = (Fraction(1, 3),)
TEXTS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT city, COUNT(*) AS n, AVG(cost) AS mean, SUM(cost) AS total FROM visits GROUP BY city ORDER BY mean",
    "SELECT grade, SUM(grade) AS g, COUNT(DISTINCT who) AS people FROM visits GROUP BY grade",
    "SELECT MEDIAN(age) AS middle, MIN(age) AS least, MAX(cost) AS most FROM visits",
    "SELECT city, VARIANCE(cost) AS v, STDDEV(age) AS s FROM visits WHERE age >= 18 AND city <> 'Ulm' GROUP BY city",
    "SELECT MODE(grade) AS usual, IQR(age) AS spread, TRIMMED_MEAN(cost, 0.1) AS typical FROM visits",
    "SELECT YEAR(day) AS y, COUNT(*) AS n FROM visits WHERE YEAR(day) IN (2020, 2022) GROUP BY y HAVING COUNT(*) > 5",
    "WITH old AS (SELECT who, cost FROM visits WHERE age > 64) SELECT AVG(cost) AS mean FROM old LIMIT 1",
    "SELECT SUM(CLAMP(cost, 0, 100)) AS total, COUNT(street) AS known FROM visits",
    "SELECT city, SUM(beds) AS beds FROM visits JOIN sites ON city = town GROUP BY city",
)
UNLISTED = (
    "SELECT street, COUNT(*) AS n FROM visits GROUP BY street",
    "SELECT street, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY street",
)
