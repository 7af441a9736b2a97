"""Analyses of a whole Function, derived from its events: one question in each module."""
