"""What follows from the events of a Function: one question in each module."""
