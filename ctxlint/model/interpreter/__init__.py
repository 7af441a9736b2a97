"""Abstract interpretation of one method: ``interpret`` walks its body and returns what happens, as events.

A ``Walk`` is composed of the abstract ``State`` of the current path, a ``Recorder`` of events, the ``MethodNames``, and
two tables with the transfer function for each type of node (``EVALUATORS``, ``EXECUTORS``). Transfer functions are free
functions that take the walk first and visit the children of their node through ``walk.evaluate`` and ``walk.execute``,
so that their modules import each other in one direction only (see ``pyproject.toml``). The domain does not depend on
walks: ``values``, ``sequences``, ``events`` and ``state``.
"""
