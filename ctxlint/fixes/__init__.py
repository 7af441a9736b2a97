"""Mending: edits on the original text, how safe they are, and the loop that applies them."""
