"""The version of ctxlint."""

__version__ = "0.1.0"
