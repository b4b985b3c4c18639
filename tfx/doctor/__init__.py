"""`tfx doctor`: what differs from the described machine, seen from outside, and its repair."""
