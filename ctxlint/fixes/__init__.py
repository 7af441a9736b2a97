"""Fixes: edits on the original text, their applicability, and the loop that applies them."""
