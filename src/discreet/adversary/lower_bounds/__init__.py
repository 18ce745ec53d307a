"""How wrong private answers have to be: lower bounds on the error of any mechanism."""
