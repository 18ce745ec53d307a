"""Charts of answers: what stands where, intervals as they are, and pictures that really render."""

import datetime
import re
import sys
from collections.abc import Iterator
from typing import Any

import altair
import numpy as np
import pytest
import vl_convert

import discreet as dc
from discreet.session.session import Session
from discreet.sql.answers.answer import Answer

HOSTILE = "</script><script>alert(1)</script>"
KINDS = ["York", "Bath", HOSTILE, "Ely"]
WARDS = [f"ward {letter}" for letter in "hgfedcba"]
START = datetime.date(2024, 1, 1)
DAYS = [START + datetime.timedelta(days) for days in range(100)]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    number = np.arange(8000)
    rows = {
        "who": number % 2000,
        "city": np.array(KINDS)[number % 4],
        "ward": np.array(WARDS)[number % 8],
        "day": np.datetime64(START) + (number % 100).astype("timedelta64[D]"),
        "age": number % 90,
        "cost": (number % 700).astype(float),
    }
    opened = dc.connect(
        rows,
        unit=dc.User("who"),
        budget=dc.ApproxDP(100, "1e-6"),
        table="visits",
        max_rows=4,
        bounds={"cost": (0, 1000), "age": (0, 89)},
        values={"city": KINDS, "ward": WARDS, "day": DAYS},
    )
    yield opened
    opened.close()


def asked(session: Session, text: str) -> tuple[Answer, dict[str, Any]]:
    """An answer, and its chart as Vega-Lite."""
    answer = session.sql(text, epsilon=1)
    return answer, answer.plot().to_dict()


def panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return spec.get("concat", [spec])


def records(spec: dict[str, Any], panel: int = 0) -> list[dict[str, Any]]:
    return spec["datasets"][panels(spec)[panel]["data"]["name"]]


def encodings(panel: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    layers = panel.get("spec", panel)["layer"]
    return [layer["encoding"][channel] for layer in layers if channel in layer["encoding"]]


def drawn(spec: dict[str, Any]) -> list[str]:
    """The texts of the picture."""
    found = re.findall(r"<text[^>]*>(.*?)</text>", vl_convert.vegalite_to_svg(spec), re.DOTALL)
    return [re.sub(r"<[^>]*>", "", text).replace("\u2060", "") for text in found]


def test_texts_go_down_the_side_in_the_order_of_the_answer(session: Session) -> None:
    question = "SELECT city, COUNT(*) AS n FROM visits WHERE city <> 'Ely' GROUP BY city ORDER BY n DESC"
    answer, spec = asked(session, question)
    (axis, *_) = encodings(spec, "y")
    assert axis["title"] == "city"
    assert [label.replace("\u2060", "") for label in axis["scale"]["domain"]] == answer.column("city")
    texts = drawn(spec)
    assert {"n by city", "n (number of rows)", "York", "Bath"} <= set(texts)


def test_values_and_ends_are_those_of_the_answer(session: Session) -> None:
    answer = session.sql("SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city", epsilon=1)
    for level in (0.5, 0.95):
        spec = answer.plot(level).to_dict()
        for place, (name, panel) in enumerate(zip(("n", "mean"), panels(spec), strict=True)):
            found = records(spec, place)
            assert [record["value"] for record in found] == answer.column(name)
            assert [(record["low"], record["high"]) for record in found] == answer.intervals(level)[name]
            assert {"low", "high", "value"} <= {encoding["field"] for encoding in encodings(panel, "x")}
        assert f"{level * 100:g} % intervals" in spec["title"]["subtitle"][0]
    with pytest.raises(dc.InvalidArgument):
        answer.plot(1.5)


def test_bars_start_at_zero_and_means_need_not(session: Session) -> None:
    _, spec = asked(session, "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city")
    zeros = [{encoding["scale"]["zero"] for encoding in encodings(panel, "x")} for panel in panels(spec)]
    assert zeros == [{True}, {False}]
    marks = [{layer["mark"]["type"] for layer in panel["layer"]} for panel in panels(spec)]
    assert ["bar" in types for types in marks] == [True, False]
    assert all("rule" in types for types in marks)


def test_numbers_go_along_the_bottom_gaps_and_all(session: Session) -> None:
    question = "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM visits GROUP BY 1 HAVING decade <> 30"
    answer, spec = asked(session, question)
    assert 30 not in answer.column("decade")
    assert encodings(spec, "x")[0]["scale"]["domain"] == [str(decade) for decade in range(0, 90, 10)]
    assert {"decade", "0", "30", "80"} <= set(drawn(spec))


def test_many_numbers_make_a_line_with_a_band(session: Session) -> None:
    _, spec = asked(session, "SELECT age, COUNT(*) AS n FROM visits GROUP BY age")
    assert encodings(spec, "x")[0]["type"] == "quantitative"
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["area", "line"]
    assert "n by age" in drawn(spec)


def test_dates_are_times_of_the_readers_own_clock(session: Session) -> None:
    _, spec = asked(session, "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1")
    assert encodings(spec, "x")[0]["type"] == "temporal"
    stamps = [record["axis"] for record in records(spec)]
    assert stamps == sorted(stamps)
    assert stamps[0] == "2024-01-01T00:00:00"
    assert "month" in drawn(spec)
    _, daily = asked(session, "SELECT day, COUNT(*) AS n FROM visits GROUP BY 1")
    assert [record["axis"] for record in records(daily)] == [f"{day}T00:00:00" for day in DAYS]


def test_a_second_key_of_few_values_has_colours(session: Session) -> None:
    _, spec = asked(session, "SELECT ward, city, COUNT(*) AS n FROM visits GROUP BY 1, 2")
    assert [label.replace("\u2060", "") for label in encodings(spec, "color")[0]["scale"]["domain"]] == KINDS
    assert encodings(spec, "yOffset")
    assert "n by ward and city" in drawn(spec)


def test_a_second_key_of_many_values_has_panels(session: Session) -> None:
    question = "SELECT ward, FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM visits GROUP BY 1, 2"
    _, spec = asked(session, question)
    assert spec["facet"]["title"] == "ward"
    assert encodings(spec, "x")[0]["title"] == "decade"
    assert set(WARDS) <= set(drawn(spec))


def test_further_keys_share_the_panels(session: Session) -> None:
    keys = "city, age > 40 AS old, cost > 300 AS dear, day > '2024-02-01' AS late"
    question = f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3, 4"
    answer, spec = asked(session, question)
    assert spec["facet"]["title"] == "dear, late"
    places = {(record["axis"], record["colour"], record["facet"]) for record in records(spec)}
    assert len(places) == len(answer.rows) == 32


def test_a_thousand_texts_fit_into_a_picture() -> None:
    names = [f"city {place:04}" for place in range(1000)]
    rows = {"who": np.arange(1000), "city": np.array(names)}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(3, "1e-6"), "table": "visits"}
    with dc.connect(rows, **facts, values={"city": names}) as opened:
        _, spec = asked(opened, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    assert 1000 <= spec["height"] < 30000
    assert "city 0000" in drawn(spec)


def test_without_a_key_each_measure_stands_alone_with_its_number(session: Session) -> None:
    answer, spec = asked(session, "SELECT COUNT(*) AS n, AVG(cost) AS mean FROM visits")
    assert len(panels(spec)) == 2
    ((low, high),) = answer.intervals()["n"]
    texts = drawn(spec)
    assert any(re.fullmatch(rf"{answer.rows[0][0]:,} ± \d+", text) for text in texts)
    assert high - low > 0


def test_columns_computed_from_measures_have_no_interval_and_say_so(session: Session) -> None:
    _, spec = asked(session, "SELECT city, COUNT(*) AS n, SUM(cost) / 100 AS hundreds FROM visits GROUP BY city")
    assert all("low" not in record for record in records(spec, 1))
    assert any("No intervals for hundreds" in line for line in spec["title"]["subtitle"])
    assert "hundreds" in drawn(spec)


def test_a_column_made_of_the_key_is_no_second_key(session: Session) -> None:
    answer, spec = asked(session, "SELECT city, UPPER(city) AS loud, COUNT(*) AS n FROM visits GROUP BY city")
    assert answer.keys == ("city",)
    assert spec["title"]["text"] == "n by city"
    assert not encodings(spec, "color")


def test_rows_without_a_key_are_numbered(session: Session) -> None:
    answer, spec = asked(session, "SELECT COUNT(*) AS n FROM visits GROUP BY city")
    assert answer.keys == ()
    assert spec["title"]["text"] == "n by row"
    assert [record["axis"] for record in records(spec)] == ["1", "2", "3", "4"]


def test_the_price_stands_below_the_title(session: Session) -> None:
    _, spec = asked(session, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    assert re.match(r"\(ε = [\d.]+(, δ = 1e-6)?\), who-level; 95 % intervals", spec["title"]["subtitle"][0])
    assert not any("clipping" in line for line in spec["title"]["subtitle"])


def test_intervals_that_leave_clipping_out_say_so() -> None:
    rows = {"who": np.arange(600) % 100, "city": np.array(["York", "Bath"] * 300)}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(3, "1e-6"), "table": "visits"}
    with dc.connect(rows, **facts, values={"city": ["York", "Bath"]}) as opened:
        _, spec = asked(opened, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    assert any("not what clipping took" in line for line in spec["title"]["subtitle"])


def test_an_answer_without_rows_is_an_empty_picture_that_says_why() -> None:
    rows = {"who": np.arange(3), "city": np.array(["York", "Bath", "Ely"])}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(3, "1e-9"), "table": "visits"}
    with dc.connect(rows, **facts) as opened:
        answer, spec = asked(opened, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
        # Three people, each alone in a city, pass the threshold with probability δ/100 = 1e-11 each at most.
        assert answer.rows == ()
        assert "There are no rows to show." in spec["title"]["subtitle"]
        assert "n by city" in drawn(spec)
        assert "n" in answer._repr_html_()
        assert answer.to_arrow().schema.names == ["city", "n"]
        assert [str(kind) for kind in answer.to_arrow().schema.types] == ["string", "int64"]


def test_keys_cannot_leave_the_script_that_holds_a_chart(session: Session) -> None:
    answer, spec = asked(session, f'SELECT city, COUNT(*) AS "{HOSTILE}" FROM visits GROUP BY city')
    with altair.renderers.enable("html"):
        ours = answer.plot()._repr_mimebundle_()["text/html"]
        bare = altair.Chart(altair.Data(values=[{"key": HOSTILE}])).mark_point()._repr_mimebundle_()["text/html"]
    # Without care the library writes such a key into the page as it is.
    assert HOSTILE in bare
    assert ours.count("</script") == 1
    assert ours.count("<script") == bare.count("<script") - 1
    assert HOSTILE in "".join(drawn(spec)).replace("&lt;", "<").replace("&gt;", ">")


def test_large_numbers_have_their_thousands_apart(session: Session) -> None:
    _, spec = asked(session, "SELECT city, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY city")
    assert {"1,000", "200,000"} & set(drawn(spec))
    assert not [text for text in drawn(spec) if re.search(r"\d{4}", text.replace("1e-6", ""))]


def test_tables_of_other_libraries_agree(session: Session) -> None:
    question = "SELECT city, ward > 'ward d' AS late, COUNT(*) AS n, SUM(age) AS years FROM visits GROUP BY 1, 2"
    answer = session.sql(question, epsilon=1)
    arrow, polars, pandas = answer.to_arrow(0.9), answer.to_polars(0.9), answer.to_pandas(0.9)
    assert arrow.schema.names == ["city", "late", "n", "n low", "n high", "years", "years low", "years high"]
    kinds = ["string", "bool", "int64", "double", "double", "int64", "double", "double"]
    assert [str(kind) for kind in arrow.schema.types] == kinds
    assert polars.rows() == list(zip(*arrow.to_pydict().values(), strict=True))
    assert [tuple(row) for row in pandas.itertuples(index=False)] == polars.rows()
    lows = [low for low, _ in answer.intervals(0.9)["n"]]
    assert arrow["n low"].to_pylist() == lows
    assert answer.to_arrow().schema.names == ["city", "late", "n", "years"]
    dated = session.sql("SELECT day, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=1)
    assert dated.to_arrow()["day"].to_pylist() == DAYS


@pytest.mark.parametrize(("library", "call"), [("polars", "to_polars"), ("pandas", "to_pandas"), ("altair", "plot")])
def test_a_missing_library_is_named(session: Session, monkeypatch: pytest.MonkeyPatch, library: str, call: str) -> None:
    answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(dc.Unsupported, match=rf"{library} is not installed; run: pip install"):
        getattr(answer, call)()
