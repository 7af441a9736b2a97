"""What is known of torch: closed lists, by full name or by method.

A name that is not here means nothing in particular. Lists are preferred to patterns (a trailing underscore, a prefix),
because users' own methods are spelled the same way. ``operations`` has one row for each function and method, most of
them generated from torch's own operator schemas (``schemas``); the other modules hold what no schema says.
"""
