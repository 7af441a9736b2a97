"""Facts about torch: closed lists, by full name or by method.

A name that is not here has no special meaning. Lists are preferred to patterns (a trailing underscore, a prefix),
because users' own methods may match these. ``operations`` has one row for each function and method, most of them
generated from torch's own operator schemas (``schemas``); the other modules contain what no schema covers.
"""
