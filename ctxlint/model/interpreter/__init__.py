"""Abstract interpretation of a method: values, state, events."""
