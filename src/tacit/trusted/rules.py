"""The rules of the ledger, as one pure function of what is known and the line that comes next.

The ledger asks it before it writes a line; opening, using and verifying a ledger or a published file fold the same
function over the lines that are there. So there is one place that says what is spent.
"""

from __future__ import annotations

from tacit.store.chain import Draft, Line, State, Unsound

# Outcomes that look at the data: each ends an intent. Other lines need none; beside a paid one they may end its intent.
PAID = ("measured", "chosen", "compared", "found", "discovered", "shut")
FREE = ("told", "dropped", "terms")


def step(state: State, seq: int, line: Draft | Line, total: int) -> State:
    """The state after a line, or `Unsound`.

    Guarantee: what is spent, reservations included, never passes `total` and what the owner has added to it, but for
        what an override carries; an intent counts as spent until its outcomes take its place; these charge at most what
        it reserved, and only once.
    Formula: an intent adds what it reserves. Its outcomes stand together, put back what was reserved and add what each
        is charged. Other outcomes are free. An override only adds, and what is open before it is never settled. An
        extension adds to what may be spent, and changes nothing that was.
    Source: write-ahead intents (Gray & Reuter 1993); `admits` for the filter.
    """
    if line.atoms < 0:
        raise Unsound("nothing gives budget back")
    rested = state._replace(settling=None, room=0)  # outcomes that stand apart do not settle together
    if line.kind == "intent":
        # An override may have carried more than the total: what costs nothing still costs nothing.
        if line.atoms and not admits(state.spent, line.atoms, total + state.raised):
            raise Unsound("more is reserved than is left")
        return rested._replace(spent=state.spent + line.atoms, open={**state.open, seq: line.atoms})
    if line.kind == "override":
        return rested._replace(spent=state.spent + line.atoms, open={})
    if line.kind == "extended" and line.intent is None:
        return rested._replace(raised=state.raised + line.atoms)
    if line.kind not in PAID + FREE:
        raise Unsound("no such kind")
    if line.intent is None:
        if line.kind in PAID or line.atoms:
            raise Unsound("what costs something ends an intent that reserved it")
        return rested
    if line.intent != state.settling:
        state = _settled(state, line.intent)
    if line.atoms > state.room:
        raise Unsound("more is charged than was reserved")
    return state._replace(spent=state.spent + line.atoms, room=state.room - line.atoms)


def _settled(state: State, intent: int) -> State:
    """The state with an open intent put back, before its first outcome is charged."""
    if intent not in state.open:
        raise Unsound("the reservation was never made, or settled before")
    left = {seq: atoms for seq, atoms in state.open.items() if seq != intent}
    return State(state.spent - state.open[intent], left, intent, state.open[intent], state.raised)


def admits(spent: int, request: int, total: int) -> bool:
    """A privacy filter: whether one more charge may follow what was spent, all in atoms of one measure.

    Guarantee: all releases together are epsilon-DP, rho-zCDP or mu-GDP, of total or mu²/2 = total. The questions, their
        mechanisms and their prices may depend on everything released before; only `total` is fixed.
    Formula: spent + request <= total.
    Source: docs/understand/privacy.md, step 4 and "The filter".
    """
    if spent < 0 or request < 0:
        raise ValueError("a charge cannot be negative: nothing gives budget back")
    return spent + request <= total
