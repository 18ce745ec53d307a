"""`discreet demo` tells the whole story, and the attack in it works on raw answers only."""

import re

import pytest
from tests.app.commands import Commands


@pytest.mark.slow
def test_the_story_is_whole(empty: Commands) -> None:
    result = empty("demo", "--folder", "play")
    said = result.stdout
    assert "her bill            1,293.06   exactly" in said
    assert "which says nothing" in said
    bill = re.search(r"her bill +(-?[\d,]+) ± ([\d,]+)", said)
    assert bill is not None
    assert int(bill.group(2).replace(",", "")) > 10 * 1293
    assert "asked before" in said
    assert "refused: the charge" in result.stderr
    assert "the signature holds" in said
    assert "sound, " in said
    used = [float(part) for part in re.findall(r"([\d.]+) % used", said)]
    assert used == sorted(used)
    assert used[-1] > used[0]
    assert all(len(line) <= 80 for line in said.splitlines())


@pytest.mark.slow
def test_its_files_can_be_kept_and_it_starts_once(empty: Commands) -> None:
    empty("demo", "--folder", "play")
    play = Commands(empty.folder / "play")
    assert play.json("ledger", "check")["sound"]
    assert "absent" in empty("demo", "--folder", "play", code=2).stderr
