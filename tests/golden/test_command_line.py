"""What scripts and files of stewards rest on: discreet.toml is read and written as before, and exit codes stay."""

import json
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from tests.app.commands import Commands, write_visits

from discreet.app.config.settings import Settings, document

GOLDEN = Path(__file__).parent


def plain(value: Any, folder: Path) -> Any:
    """An argument of `connect` as JSON can hold it, with paths from the folder on, and what is not as by default."""
    if is_dataclass(value):
        given = {f.name: getattr(value, f.name) for f in fields(value)}
        usual = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(value)}
        return {key: plain(item, folder) for key, item in given.items() if item != usual[key]}
    if isinstance(value, dict):
        return {key: plain(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, folder) for item in value]
    if isinstance(value, Path):
        return str(value.relative_to(folder))
    return value if isinstance(value, int | float | str | None) else str(value)


def meaning(name: str) -> Any:
    """What `connect` is called with for a golden file."""
    path = Path("/data/discreet.toml")
    return plain(Settings.of(document(path, (GOLDEN / name).read_text()), path).arguments(), path.parent)


def test_a_file_with_every_key_means_what_it_meant() -> None:
    assert meaning("discreet.toml") == json.loads((GOLDEN / "discreet_toml.json").read_text())


def test_commands_end_with_these_codes_and_write_these_files(tmp_path: Path) -> None:
    write_visits(tmp_path / "visits.parquet")
    (tmp_path / "cities.csv").write_text("city,region\nA,north\nB,north\nC,south\n")
    for step in json.loads((GOLDEN / "exit_codes.json").read_text()):
        Commands(tmp_path)(*step["command"], code=step["code"])
        if "writes" in step:
            assert (tmp_path / "discreet.toml").read_text() == (GOLDEN / step["writes"]).read_text(), step
