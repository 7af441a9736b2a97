"""Suppression comments and baselines."""
