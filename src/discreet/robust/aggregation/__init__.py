"""Many answers of blocks become one: blocks of units, numeric centres, votes, labels."""
