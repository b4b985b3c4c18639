"""What each shell of this machine finds, in each of the ways it is started."""
