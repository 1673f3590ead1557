"""One file per result that we reproduce or claim. `jettison experiment list` shows them."""
