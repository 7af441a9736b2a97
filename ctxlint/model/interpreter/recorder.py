"""The events that a walk records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.interpreter.events import Event, SavedRead

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.interpreter.events import Guard, Orders
    from ctxlint.model.interpreter.state import State


class Recorder:
    """Collects events. While ``muted``, the walk changes the state and records nothing (the first iteration of a loop).

    ``kinds`` are the kinds of event that are needed; None for all of them.
    """

    def __init__(self, kinds: frozenset[type[Event]] | None = None) -> None:
        self.events: list[Event] = []
        self.muted = 0
        self.kinds = kinds
        self._saved_reads: list[int] = []
        """The indices of the events that read the saved tensors."""
        self._order = 0
        self.amended = 0
        """How many events were recorded or changed in other ways than by ``record``."""

    def record(
        self, make: Callable[..., Event], node: cst.CSTNode, state: State, in_loop: bool, facts: dict[str, Any]
    ) -> None:
        """Record an event at ``node``, on the path of ``state``."""
        if self.muted or (self.kinds is not None and make not in self.kinds):
            return
        if make is SavedRead:
            self._saved_reads.append(len(self.events))
        self.events.append(
            make(
                node=node,
                order=self._order,
                guards=state.guards,
                before=state.done,
                maybe_before=state.maybe,
                in_loop=in_loop,
                **facts,
            )
        )
        state.done |= 1 << self._order
        state.maybe |= 1 << self._order
        self._order += 1

    def replay(self, event: Event, state: State, before: Orders, maybe: Orders, in_loop: bool) -> int | None:
        """Record an event that happened inside a call; returns its order, None if nothing is recorded now.

        Nothing either if it is under ``ctx.flag`` in the function, and the call is where ``ctx.flag`` does not hold.
        """
        self.amended += 1
        if self.muted or (self.kinds is not None and type(event) not in self.kinds):
            return None
        if any(_same_attribute_refused(guard, other) for guard in event.guards for other in state.guards):
            return None
        if isinstance(event, SavedRead):
            self._saved_reads.append(len(self.events))
        guards, order = (*state.guards, *event.guards), self._order
        self.events.append(
            replace(event, order=order, guards=guards, before=before, maybe_before=maybe, in_loop=in_loop)
        )
        self._order += 1
        return order

    def rewind(self, recorded: tuple[Event, ...]) -> None:
        """Restore the events that were ``recorded`` before."""
        self.events[:] = recorded
        self._order = recorded[-1].order + 1 if recorded else 0
        self._saved_reads = [at for at in self._saved_reads if at < len(recorded)]

    def continue_after(self, recorded: tuple[Event, ...]) -> None:
        """Continue a walk that has ``recorded`` these events."""
        self.events[:] = recorded
        self._order = recorded[-1].order + 1 if recorded else 0
        self._saved_reads = [at for at, event in enumerate(recorded) if isinstance(event, SavedRead)]

    def amend_saved_read(self, change: Callable[[SavedRead], SavedRead], holder: str | None) -> None:
        """Update the last read of the saved tuple, or of the one bound to ``holder``."""
        self.amended += 1
        if self.muted:
            return
        for at in reversed(self._saved_reads):
            spend()
            event = self.events[at]
            if isinstance(event, SavedRead) and (holder is None or event.bound_to == holder):
                self.events[at] = change(event)
                return


def _same_attribute_refused(inside: Guard, around: Guard) -> bool:
    """Whether two tests are of an attribute that is written the same, with opposite outcomes."""
    both = isinstance(inside.test, cst.Attribute) and isinstance(around.test, cst.Attribute)
    return both and inside.holds != around.holds and inside.reads_like(around)
