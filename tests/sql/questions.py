"""Random questions in SQL about the tables of `tests.sql.tables`.

Most can be answered; about one in ten has something put in that must be refused or does not fit.
"""

import random

NUMBERS = {"visits": ["age", "cost"], "drugs": ["dose"], "towns": ["people"], "log": ["level"]}
TEXTS = {"visits": ["city"], "drugs": ["drug"], "towns": ["region", "city"], "log": ["note"]}
ODD = [
    "ROW_NUMBER() OVER ()",
    "random()",
    "(SELECT 1)",
    "nonsense",
    "patient.city",
    "age[1]",
    "'x' + 1",
    "SUM(SUM(age))",
    "COUNT(DISTINCT cost)",
    "now()",
    "age COLLATE nocase",
]


class Asker:
    """Writes one question at a time."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def question(self) -> str:
        kind = self.rng.randrange(10)
        if kind == 0:
            return self._from_features()
        if kind == 1:
            return self._from_union()
        if kind == 2:
            return self._outer()
        return self._aggregate(*self._source())

    def _pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def _source(self) -> tuple[str, list[str], list[str], str]:
        """FROM, the columns that are numbers, those that are text, and how the unit is called."""
        kind = self.rng.randrange(8)
        if kind == 0:
            joined = self._pick(
                "JOIN towns t ON v.city = t.city", "LEFT JOIN towns t ON t.city = v.city AND t.people > 9"
            )
            return f"visits v {joined}", ["v.age", "cost", "people"], ["v.city", "region"], "patient"
        if kind == 1:
            joined = self._pick("JOIN", "LEFT JOIN")
            return f"visits v {joined} drugs USING (patient)", ["age", "dose", "v.cost"], ["drug", "city"], "v.patient"
        if kind == 2:
            inner = f"SELECT patient AS who, {self._number(NUMBERS['visits'], 1)} AS x, city AS c FROM visits"
            inner += self._where(NUMBERS["visits"], TEXTS["visits"])
            return f"({inner}) AS s", ["x", "s.x"], ["c"], "who"
        if kind == 3:
            return "log", ["level"], ["note"], "level"
        if kind == 4:
            return "towns JOIN visits ON towns.city = visits.city", ["age", "people"], ["region"], "patient"
        table = self._pick("visits", "visits", "drugs")
        return table, NUMBERS[table], TEXTS[table], "patient"

    def _aggregate(self, source: str, numbers: list[str], texts: list[str], unit: str) -> str:
        rng = self.rng
        keys = [self._key(numbers, texts) for _ in range(rng.randrange(3))]
        measures = [self._measure(numbers, texts, unit) for _ in range(rng.randrange(1, 4))]
        shown = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        shown += [f"{measure} AS m{place}" for place, measure in enumerate(measures)]
        text = f"SELECT {', '.join(shown)} FROM {source}{self._where(numbers, texts, source)}"
        if keys:
            named = [self._pick(key, str(place + 1), f"k{place}") for place, key in enumerate(keys)]
            text += f" GROUP BY {', '.join(named)}"
        if rng.random() < 0.2:
            text += f" HAVING {self._pick('COUNT(*) > 1', 'm0 > 2', 'NOT (COUNT(*) BETWEEN 2 AND 3)')}"
        if rng.random() < 0.3:
            text += f" ORDER BY {self._pick('m0', '1 DESC', 'COUNT(*)')}"
        return text

    def _from_features(self) -> str:
        rng = self.rng
        keys = ["patient", *(["city"] if rng.random() < 0.5 else [])]
        first = self._pick("COUNT(*)", "SUM(age)", "AVG(cost)", "MAX(age) - MIN(age)", "COUNT(*) FILTER (WHERE urgent)")
        inner = f"SELECT {', '.join(keys)}, {first} AS n FROM visits{self._where(['age', 'cost'], ['city'])}"
        inner += f" GROUP BY {', '.join(keys)}" + (" HAVING COUNT(*) > 1" if rng.random() < 0.3 else "")
        outer = self._aggregate("f", ["n"], keys[1:] or ["CAST(n AS VARCHAR)"], "patient")
        return f"WITH f AS ({inner}) {outer}"

    def _from_union(self) -> str:
        first = f"SELECT patient AS p, {self._number(['age', 'cost'], 1)} AS x, city AS c FROM visits"
        second = f"SELECT patient, dose, drug FROM drugs{self._where(['dose'], ['drug'])}"
        return self._aggregate(f"({first} UNION ALL {second}) AS u", ["x"], ["c"], "p")

    def _outer(self) -> str:
        inner = self._aggregate("visits", NUMBERS["visits"], TEXTS["visits"], "patient")
        return f"SELECT m0, m0 AS again FROM ({inner}) WHERE m0 > {self.rng.randrange(5)}"

    def _key(self, numbers: list[str], texts: list[str]) -> str:
        number, text = self.rng.choice(numbers), self.rng.choice(texts)
        return self._pick(
            text,
            f"UPPER({text})",
            f"FLOOR({number} / 10) * 10",
            f"CASE WHEN {number} > 3 THEN 'high' ELSE 'low' END",
            f"COALESCE({text}, 'none')",
            f"LEFT({text}, 1) || '!'",
            f"CAST({number} AS BIGINT) % 3",
            f"{number} IS NULL",
        )

    def _measure(self, numbers: list[str], texts: list[str], unit: str) -> str:
        number = self._number(numbers, 1)
        return self._pick(
            "COUNT(*)",
            f"COUNT({self.rng.choice(texts)})",
            f"COUNT(DISTINCT {unit})",
            f"SUM({number})",
            f"AVG({number})",
            f"MIN({number})",
            f"MAX({number}) FILTER (WHERE {self._condition(numbers, texts)})",
            f"STDDEV({number})",
            f"MEDIAN({number})",
            f"quantile_cont({number}, 0.25)",
            f"SUM({number}) / COUNT(*)",
            f"1 + 2 * COUNT(*) - COUNT({self.rng.choice(texts)})",
            f"COUNT(*) FILTER (WHERE {self._condition(numbers, texts)})",
        )

    def _number(self, numbers: list[str], depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.01:
            return rng.choice(ODD)
        number = rng.choice(numbers)
        if depth == 0 or rng.random() < 0.4:
            return number
        other = self._number(numbers, depth - 1)
        return self._pick(
            f"{number} + {other}",
            f"{number} - {other} * 2",
            f"-{number}",
            f"ABS({number} - 5)",
            f"ROUND({number} / 3, 1)",
            f"CLAMP_({number})",
            f"COALESCE({number}, {other}, 0)",
            f"NULLIF({number}, 3)",
            f"LEAST({number}, {other}, 7)",
            f"CASE {number} WHEN 1 THEN {other} ELSE 4.5e0 END",
            f"SQRT(ABS({number}))",
            f"{number} / 7",
            f"POWER({number}, 2)",
            f"LENGTH(CAST(CAST({number} AS BIGINT) AS VARCHAR))",
        ).replace(f"CLAMP_({number})", f"GREATEST({number}, 2)")

    def _condition(self, numbers: list[str], texts: list[str]) -> str:
        number, text = self._number(numbers, 1), self.rng.choice(texts)
        return self._pick(
            f"{number} > 4",
            f"{number} BETWEEN 2 AND 50",
            f"{text} LIKE '%o%'",
            f"{text} IN ('Rome', 'a', 'x')",
            f"NOT {text} = 'Oslo'",
            f"{number} <= 30 OR {text} IS NULL",
            f"{text} || 'a' <> 'aa' AND {number} IS NOT NULL",
            f"STARTS_WITH(LOWER({text}), 'r')",
        )

    def _where(self, numbers: list[str], texts: list[str], source: str = "") -> str:
        rng = self.rng
        parts = [f"({self._condition(numbers, texts)})" for _ in range(rng.randrange(3))]
        if source == "visits" and rng.random() < 0.3:
            parts.append(
                self._pick(
                    "city IN (SELECT city FROM towns WHERE people > 300000)",
                    "patient IN (SELECT patient FROM drugs WHERE dose > 4)",
                    "EXISTS (SELECT 1 FROM drugs d WHERE d.patient = visits.patient AND d.dose > 5)",
                    "NOT EXISTS (SELECT * FROM towns WHERE towns.city = visits.city AND region = 'north')",
                    "day > '2020-06-01'",
                    "YEAR(seen) = 2021 AND MONTH(day) > 3",
                )
            )
        return f" WHERE {' AND '.join(parts)}" if parts else ""
