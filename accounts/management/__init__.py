"""Commands of `./run manage`."""
