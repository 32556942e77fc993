"""What a session starts from, in words and figures: what is bought, for how much, and which errors to expect of it.

From public parameters alone, so that it can be said before anything is bought. For `Session.base` and `Session.start`.
"""

from __future__ import annotations

from tacit.model.budget import Loss
from tacit.model.noise_law import quantile, quantile_of_sum
from tacit.model.residuals import Residuals
from tacit.model.status import Expected
from tacit.model.workload import Convolution, Marginal, Tree
from tacit.release.classes import MEANS, MOST_SUMMED, ramps
from tacit.release.forecast import WarmStarted
from tacit.release.histogram import everything
from tacit.release.online_terms import Terms
from tacit.release.public import Public
from tacit.release.ranges.band import band
from tacit.release.ranges.decoder import Decoder
from tacit.release.recall import expected_noise
from tacit.release.settings import HistogramSettings, IterativeSettings
from tacit.release.warm_start import wanted


def of_histogram(
    public: Public, settings: HistogramSettings, loss: Loss, confidence: float
) -> tuple[str, list[Expected]]:
    """The law of the noise is known, so that these errors are exact."""
    cells, bought, sure = public.domain.size, everything(public.domain, loss.measure), f"{100 * confidence:.10g} %"
    what = f"one noisy histogram of all {cells:,} combinations of values"
    if isinstance(bought, Tree | Convolution):
        what = f"one release of all ranges of {bought.name}"
    if not loss.atoms:
        return what, []
    noise = expected_noise(public, bought, loss)
    if isinstance(bought, Tree | Convolution):
        at_once = band(Decoder(bought, cells), noise, confidence).intervals
        return what, [Expected(at_once, f"all ranges at once ({sure})")]
    half = max(1, cells // 2)
    return what, [
        Expected(quantile(noise, confidence), f"one combination ({sure})"),
        Expected(quantile_of_sum(noise, half, confidence), f"half of all combinations together ({sure})"),
    ]


def of_warm_start(
    public: Public, settings: IterativeSettings, loss: Loss, confidence: float
) -> tuple[str, list[Expected]]:
    """A forecast (`forecast.WarmStarted`); without a certificate the promise is the gate's."""
    domain, people, total = public.domain, public.rows_per_person, public.divided
    if not settings.warm or all(size == 1 for size in domain.shape):
        return "", []
    warm, certify = (Loss(total.measure, int(total.atoms * share)) for share in (settings.warm, settings.certify))
    certificate = ", and a certificate of how far off the answers from them are" if certify.atoms else ""
    what = f"{_tables(public, warm)}{certificate}"
    if not loss.atoms:
        return what, []
    prior_rows = 0 if public.prior is None else public.prior.counts_on(domain)
    start, sure = WarmStarted(domain, public.rows, total.measure, people, prior_rows), f"{100 * confidence:.10g} %"
    if certify.atoms:
        one, at_once = start.bars(warm, certify, confidence)
        # Both parts of a mean are within about that bar, so the mean is off by it over its rows: see `formula.share`.
        among = min(1000, public.rows)
        width = f"± {min(100.0, 100 * one / among):.0f} % of its attribute's span"
        mean = f" (a mean among {among:,} rows, chosen by at most {MOST_SUMMED - 1} attributes: {width})"
        numbers = any(ramps(domain, name)[MEANS] for name in domain.names)  # a date has no mean
        about = f"{sure} of questions with a few conditions{mean * numbers}", f"all of these at once ({sure})"
    else:
        terms = Terms.of(total - warm, hits=settings.hits, confidence=confidence, rows_per_person=people)
        one, at_once = start.mean(warm), terms.shown(terms.threshold(settings.questions))
        about = "the mean of questions with up to three conditions", f"all free answers at once ({sure})"
    if prior_rows:
        about = about[0], f"{about[1]}; the prior is taken to be of the same population"
    return what, [Expected(min(e, float(public.rows)), words) for e, words in zip((one, at_once), about, strict=True)]


def _tables(public: Public, warm: Loss) -> str:
    """What a start measures, in words."""
    scopes = list[tuple[str, ...]]()
    for question, _ in wanted(public, warm):
        if isinstance(question, Residuals):
            scopes += question.scopes
        elif isinstance(question, Marginal):
            scopes.append(question.names)
    many = {size: sum(len(scope) == size for scope in scopes) for size in (1, 2, 3)}
    named = {2: "pair", 3: "triple"}
    rest = [f"{many[size]} {word}{'s' if many[size] > 1 else ''}" for size, word in named.items() if many[size]]
    return f"one noisy release of the tables of {len(public.domain)} attributes{' and of '.join(['', *rest])}"
