"""The look before a domain is declared: which values of a column enough rows have, and where the others lie.

Called before a session opens, on the ledger that the session will go on with. Whatever it returns may be published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tacit.errors import InvalidBudget, LedgerError
from tacit.exact.price import threshold_of, values_noise, values_price
from tacit.model.budget import Loss
from tacit.model.entry import Discovered, Found, Measurement, discovery_key, encode
from tacit.model.workload import Question, check, key, unit
from tacit.store.chain import Line
from tacit.trusted.cells import Tally
from tacit.trusted.curator import paid
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.noise import add_noise
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import noise_of, price_of, truth


class _Look(NamedTuple):
    """Something to discover: its key, its price, and how it is drawn, with the share of the delta that it may take."""

    key: str
    price: Loss
    draw: Callable[[int, int], Found | Discovered]


def discover(
    ledger: Ledger, tallies: Sequence[Tally], asked: Sequence[tuple[Question, Records]], loss: Loss
) -> list[Line]:
    """The values that enough rows have, of each tallied column, and noisy answers to questions about wide domains.

    Each costs at most `loss`. What was discovered before is read back for nothing.

    Guarantee: all that the ledger ever releases is (epsilon, delta)-DP. What is discovered is paid for like any
        release; beyond that, a look tells neighbours with different values apart with a chance of at most
        aside / 2^i, i the number of its intent, which no other look has: `aside` in all, which `price.total` left out.
    Formula: true counts of all values that rows have + discrete Gaussian noise, those of at least a threshold kept;
        questions as in `Curator.measure`.
    Source: docs/understand/privacy.md, "Discovery"; Korolova et al. 2009; Wilson et al. 2020.
    """
    if tallies and not ledger.aside:
        raise InvalidBudget("without a delta, which values a column has cannot be discovered: list them yourself.")
    if tallies and next(ledger.log.lines(kinds=("override",)), None) is not None:
        raise LedgerError("after an accepted rollback no values are discovered: how much of delta is spent is unknown.")
    looks = [_values(tally, loss, ledger.aside) for tally in tallies]
    looks += [_answers(question, records, loss) for question, records in asked]
    with ledger.log.turn():
        lines = ledger.find_many([look.key for look in looks])
        new = {look.key: look for look in looks if look.key not in lines}
        among = len(new.keys() & {look.key for look in looks[: len(tallies)]})

        def draw(intent: int) -> list[Outcome]:
            return [Outcome(k, one.price.atoms, *encode(one.draw(intent, among))) for k, one in new.items()]

        if new:
            cost = Loss(loss.measure, sum(look.price.atoms for look in new.values()))
            lines |= zip(new, paid(ledger, cost, f"discover {len(new)}", draw), strict=True)
    return [lines[look.key] for look in looks]


def _values(tally: Tally, loss: Loss, aside: float) -> _Look:
    people = tally.rows_per_person
    noise = values_noise(loss, people)

    def draw(intent: int, among: int) -> Found:
        least = threshold_of(noise, people, aside, intent, among)
        noisy = add_noise(tally.counts, noise).tolist()
        # In an order that says nothing of the others: the most frequent first, by the noisy counts.
        kept = [(n, v) for v, n in zip(tally.values, noisy, strict=True) if n >= least]
        kept.sort(key=lambda one: (-one[0], one[1] is None, str(one[1])))  # no value may be 'None', too
        return Found(tally.name, tuple(v for _, v in kept), tuple(n for n, _ in kept), least, among, noise)

    return _Look(discovery_key(tally.name), values_price(noise, people, loss.measure), draw)


def _answers(question: Question, records: Records, loss: Loss) -> _Look:
    domain, people = records.domain, records.rows_per_person
    check(question, domain)
    noise = noise_of(question, domain, loss, people)

    def draw(*_: int) -> Discovered:
        values = add_noise(truth(question, records), noise)
        return Discovered(domain, records.rows, Measurement(question, values, unit(question), noise))

    about = discovery_key(domain.key, key(question))
    return _Look(about, price_of(question, domain, noise, loss.measure, people), draw)
