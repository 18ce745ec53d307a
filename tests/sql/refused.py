"""Questions that must be refused, whatever the data: each would show somebody, or let rows of two people meet."""

from tests.sql.worlds import World

ALWAYS = (
    "SELECT * FROM visits",
    "SELECT city FROM visits WHERE age > 90",
    "SELECT who, cost FROM visits ORDER BY cost LIMIT 1",
    "SELECT COUNT(*), random() FROM visits",
    "SELECT COUNT(*) FROM visits WHERE random() < 0.5",
    "SELECT COUNT(*) FROM visits WHERE age = (SELECT MAX(age) FROM visits)",
    "SELECT COUNT(*) FROM visits WHERE age > ALL (SELECT age FROM visits)",
    "SELECT COUNT(*) FROM (SELECT age, ROW_NUMBER() OVER (ORDER BY age) AS n FROM visits) WHERE n = 1",
    "SELECT SUM(COUNT(*)) OVER () FROM visits",
    "SELECT COUNT(*) FROM (SELECT age FROM visits ORDER BY age LIMIT 1)",
    "SELECT COUNT(*) FROM (SELECT age FROM visits LIMIT 5)",
    "SELECT COUNT(DISTINCT cost) FROM visits",
    "SELECT SUM(DISTINCT cost) FROM visits",
    "SELECT SUM(city) FROM visits",
    "SELECT FIRST(cost) FROM visits",
    "SELECT COUNT(*) FROM visits, labs",
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.cost = l.result",
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.age = w.age",
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.cost > l.result",
    "SELECT COUNT(*) FROM visits WHERE cost IN (SELECT result FROM labs)",
    "SELECT COUNT(*) FROM visits WHERE cost NOT IN (SELECT result FROM labs)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM labs l WHERE l.result = v.cost)",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM labs WHERE result > 3)",
    "SELECT COUNT(*) FROM towns LEFT JOIN visits ON towns.city = visits.city",
    "SELECT COUNT(*) FROM visits RIGHT JOIN towns ON towns.city = visits.city",
    "SELECT COUNT(*) FROM towns",
    "SELECT city FROM visits UNION SELECT city FROM visits",
    "SELECT COUNT(*) FROM (SELECT city FROM visits INTERSECT SELECT city FROM towns)",
    "SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)",
    "SELECT COUNT(*) FROM visits TABLESAMPLE 10%",
    "SELECT city, COUNT(*) FROM visits GROUP BY city QUALIFY ROW_NUMBER() OVER () = 1",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
    "SELECT COUNT(*) FROM nowhere",
    "SELECT COUNT(nothing) FROM visits",
    "SELECT COUNT(*) FROM 'visits.parquet'",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM duckdb_tables()",
    "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM labs",
    "DROP TABLE visits",
    "INSERT INTO visits SELECT * FROM visits",
    "COPY visits TO 'visits.csv'",
    "SELECT COUNT(*) FROM visits WHERE age",
    "SELECT COUNT(*) FROM visits WHERE now() > DATE '2020-01-01'",
    "SELECT city, age, COUNT(*) FROM visits GROUP BY city",
    "SELECT COUNT(*) AS n FROM visits HAVING age > 3",
    "SELECT SUM(SUM(age)) FROM visits",
    "SELECT",
    "nonsense",
    "",
)
BY_USER = (
    "SELECT who, COUNT(*) FROM visits GROUP BY who",
    "SELECT MAX(who) FROM visits",
    "SELECT SUM(who) FROM visits",
    "SELECT COUNT(*) FROM items",
    "SELECT AVG(price) FROM items WHERE sort = 'p'",
    "SELECT COUNT(*) FROM visits v JOIN items i ON i.visit = v.age",
    "SELECT COUNT(*) FROM visits v JOIN items i ON i.price = v.cost",
    "SELECT COUNT(*) FROM labs l JOIN items i ON i.price = l.result",
    "SELECT COUNT(*) FROM visits v JOIN items i ON i.visit = v.id + 1",
    "SELECT COUNT(*) FROM items i LEFT JOIN visits v ON i.visit = v.id",
    "SELECT COUNT(*) FROM (SELECT MAX(id) AS id FROM visits GROUP BY who) s JOIN items i ON i.visit = s.id",
    "SELECT COUNT(*) FROM (SELECT price, sort FROM items UNION ALL SELECT cost, city FROM visits) AS u",
    "SELECT COUNT(*) FROM (SELECT visit, COUNT(*) AS n FROM items GROUP BY visit) AS f",
)
BY_ROW = (
    "SELECT COUNT(*) FROM (SELECT cost FROM visits UNION ALL SELECT cost FROM visits) AS u",
    "SELECT COUNT(DISTINCT who) FROM visits",
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.who = l.PID",
    "SELECT COUNT(*) FROM visits WHERE who IN (SELECT PID FROM labs)",
    "SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM visits GROUP BY who)",
)


def refusals(world: World) -> tuple[str, ...]:
    """Questions about this world's tables that have no answer."""
    own = BY_ROW if world.by_row else BY_USER
    return (*ALWAYS, *(text.replace("PID", world.pid) for text in own))
