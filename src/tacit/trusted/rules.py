"""The rules of the ledger, as one pure function of what is known and the line that comes next.

The ledger asks it before it writes a line; opening, using and verifying a ledger or a published file fold the same
function over the lines that are there. So there is one place that says what is spent.
"""

from __future__ import annotations

from tacit.exact.price import admits
from tacit.store.chain import Charged, State, Unsound

# Outcomes that look at the data: each ends an intent. Other lines need none; beside a paid one they may end its intent.
PAID = ("measured", "chosen", "compared", "found", "discovered", "shut")
_FREE = ("told", "dropped", "terms")
_OUTCOMES = frozenset(PAID + _FREE)


def step(state: State, seq: int, line: Charged, total: int, *, continues: bool = False) -> State:
    """The state after a line, or `Unsound`.

    Guarantee: what is spent, reservations included, never passes `total` and what the owner has added to it, but for
        what an override carries; an intent counts as spent until its outcomes take its place; these charge at most what
        it reserved, and only once.
    Formula: an intent adds what it reserves. Its outcomes stand together, put back what was reserved and add what each
        is charged. Other outcomes are free. An override only adds, and what is open before it is never settled. An
        extension adds to what may be spent, and changes nothing that was. A ledger that `continues` another begins with
        what that one had spent, and the other ends with all that is left: nothing is bought there after it.
    Source: write-ahead intents (Gray & Reuter 1993); `admits` for the filter.
    """
    if line.atoms < 0:
        raise Unsound("nothing gives budget back")
    if (line.kind == "carried") != (continues and seq == 1):
        raise Unsound("what the ledger before has spent comes first, and once")
    if line.intent is not None and line.kind in _OUTCOMES:
        if line.intent != state.settling:
            state = _settled(state, line.intent)
        if line.atoms > state.room:
            raise Unsound("more is charged than was reserved")
        # Nearly all lines are such, and somebody waits while they are folded: `_replace` would take four times as long.
        spent, room = state.spent + line.atoms, state.room - line.atoms
        return State(spent, state.open, state.settling, room, state.raised, state.closed)
    limit = total + state.raised
    # Outcomes that stand apart do not settle together.
    rested = state if state.settling is None else state._replace(settling=None, room=0)
    if line.kind in ("intent", "carried"):
        # An override may have carried more than the total: what costs nothing still costs nothing.
        if line.atoms and (state.closed or not admits(state.spent, line.atoms, limit)):
            raise Unsound("more is reserved than is left")
        opened = {seq: line.atoms} if line.kind == "intent" else {}
        return rested._replace(spent=state.spent + line.atoms, open={**state.open, **opened})
    if line.kind == "override":
        return rested._replace(spent=state.spent + line.atoms, open={})
    if line.kind in ("extended", "closed") and line.intent is None:
        if state.closed or (line.kind == "closed" and line.atoms != max(0, limit - state.spent)):
            raise Unsound("a ledger is closed once, with all that is left, and never extended after it")
        if line.kind == "extended":
            return rested._replace(raised=state.raised + line.atoms)
        return rested._replace(spent=state.spent + line.atoms, closed=True)
    if line.kind not in _OUTCOMES:
        raise Unsound("no such kind")
    if line.kind in PAID or line.atoms:
        raise Unsound("what costs something ends an intent that reserved it")
    return rested


def _settled(state: State, intent: int) -> State:
    """The state with an open intent put back, before its first outcome is charged."""
    if intent not in state.open:
        raise Unsound("the reservation was never made, or settled before")
    left = {seq: atoms for seq, atoms in state.open.items() if seq != intent}
    reserved = state.open[intent]
    return state._replace(spent=state.spent - reserved, open=left, settling=intent, room=reserved)
