"""What follows from a plan alone: where columns come from, what predicates imply, and its canonical form."""
