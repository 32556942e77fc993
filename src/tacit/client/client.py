"""The analyst's end of a server: `connect`, and a client that is asked like a session."""

from __future__ import annotations

import hashlib
import ssl
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from tacit import errors
from tacit.client.message import loss, other_version, read_answer, written
from tacit.client.transport import SECONDS, Address, Sent, Transport, find_key, no_key
from tacit.errors import ConfigError, InvalidQuery, ServerError, TacitError
from tacit.model.answer import Answer
from tacit.model.ask import Ask, check_within
from tacit.model.block import with_blocks
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.facts import Receipt
from tacit.model.status import BlockStatus, DryRun, Expected, Extension, History, Past, Quota, Started, Status
from tacit.model.table import Answers
from tacit.questions import Askable, Questions, batch_of, number_of
from tacit.replies import (
    MAX_BATCH,
    AskManyReply,
    AskReply,
    BaseReply,
    BudgetLine,
    BudgetReply,
    CostReply,
    DatasetsReply,
    DomainReply,
    ErrorReply,
    HistoryReply,
)
from tacit.whole_file import write_whole

S = TypeVar("S", bound=msgspec.Struct)
_MOST_BYTES = 2**20 - 2**10  # of a body, with room for what is around the questions
_PAGE = 1_000  # lines of a history that come at once
_CHUNK = 2**18
_KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TacitError)]
_CLASSES = {kind.code: kind for kind in _KINDS}


def connect(
    url: str,
    key: str | Path | None = None,
    *,
    data: str | None = None,
    timeout: float = SECONDS,
    plain_http: bool = False,
    context: ssl.SSLContext | None = None,
) -> Client:
    """A client of a server's data set, which is asked like a session: the same questions, the same answers.

    key: the key, or a path to a file that holds it and that nobody else can read. Without it, TACIT_KEY, the file that
        TACIT_KEY_FILE names, or what the keyring has for the address, where Python's `keyring` is installed.
    data: the name of the data set; it need not be said where the server has one.
    timeout: seconds to wait for the next bytes of an answer.
    plain_http: send the key in the clear to another machine.
    context: for TLS, where the system's certificates are not those to trust.

    A request that was lost on the way, or that the server was too busy for, is sent again a few times. What was asked
    before is told again for nothing, so nothing is ever paid twice.

    >>> people = tacit.connect("https://tacit.example.org", data="people")   # doctest: +SKIP
    >>> people.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
    """
    address = Address.of(url, plain_http=plain_http)
    found = find_key(key, str(address))
    transport = Transport(address, found, seconds=timeout, context=context)
    try:
        return Client(transport, data)
    except BaseException as error:
        transport.close()
        if found is None and isinstance(error, ServerError) and error.code == "unauthorized":
            raise no_key(str(address)) from None
        raise


class RemoteChoice(NamedTuple):
    """How the budget is spent, and why in this way."""

    mechanism: str
    reason: str


class Client(Questions):
    """Answers questions about one data set of a server. Made by `tacit.connect`; closes with `close()` or `with`.

    Safe from any thread. What is asked of it takes one request; a batch one for every 1,000 questions.
    """

    def __init__(self, transport: Transport, data: str | None = None) -> None:
        self._transport = transport
        self._data = self._only() if data is None else data
        found = self._get("domain", DomainReply)
        self._described = found
        self._paid, self._lock = 0, threading.Lock()

    @property
    def url(self) -> str:
        """Where the server is."""
        return str(self._transport.address)

    @property
    def data(self) -> str:
        """The name of the data set."""
        return self._data

    @property
    def domain(self) -> Domain:
        """The declared attributes; of a series also the column of blocks, which are looked up each time."""
        if not self._described.blocks:
            return self._declared
        found = self._grown()
        first, *others = Domain.from_toml(found.declared).items()
        return with_blocks(Domain(dict(others)), first[0], found.attributes[0].labels)

    @cached_property
    def _declared(self) -> Domain:
        return Domain.from_toml(self._described.declared)

    @property
    def blocks(self) -> list[str]:
        """The labels of the blocks of a series, in order; none of one table."""
        return self._grown().attributes[0].labels if self._described.blocks else []

    @property
    def rows(self) -> int:
        return self._grown().rows

    def _grown(self) -> DomainReply:
        """What is public, with the blocks that there are by now."""
        return self._get("domain", DomainReply) if self._described.blocks else self._described

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person are protected together: 1 unless the owner declared more."""
        return self._described.rows_per_person

    @property
    def choice(self) -> RemoteChoice:
        """The mechanism, and why."""
        return RemoteChoice(self._described.mechanism, self._described.reason)

    @property
    def confidence(self) -> float:
        return self._described.confidence

    @property
    def paid(self) -> Loss:
        """What the answers that this client was given have cost. Others may have spent more meanwhile."""
        return Loss(self._described.measure, self._paid)

    def status(self) -> Status:
        """How the budget stands, and the quota of the key, if it has one."""
        found, terms = self._get("budget", BudgetReply), self._grown()
        quota = None if found.quota is None else Quota(loss(found.quota.of), loss(found.quota.used))
        return Status(
            rows=terms.rows,
            cells=terms.cells,
            budget=_budget(found.budget),
            mechanism=terms.mechanism,
            reason=terms.reason,
            total=loss(found.total),
            spent=loss(found.spent),
            left=loss(found.left),
            epsilon_spent=found.epsilon_spent,
            extensions=tuple(
                Extension(_budget(one.budget), loss(one.total), one.time, Receipt(one.entry, one.seal))
                for one in found.extensions
            ),
            continues=found.continues,
            continued_by=found.continued_by,
            quota=quota,
            rows_per_person=terms.rows_per_person,
            blocks=tuple(
                BlockStatus(one.block, one.rows, loss(one.spent), loss(one.total), one.started) for one in found.blocks
            ),
        )

    @property
    def history(self) -> History:
        """Everything bought so far, by everybody, oldest first."""
        return History(self._past())

    def _past(self) -> Iterator[Past]:
        after: int | None = 0
        while after is not None:
            page = self._get(f"history?after={after}&limit={_PAGE}", HistoryReply)
            for line in page.history:
                receipt = Receipt(line.entry, line.seal)
                yield Past(line.question, loss(line.cost), receipt, line.kind, line.percent)
            after = page.next

    @property
    def base(self) -> Started:
        """What `start` buys: in words, for how much of the budget, and which errors to expect. Spends nothing."""
        return self._started(self._get("base", BaseReply))

    @property
    def started(self) -> bool:
        """Whether nothing has to be bought any more before questions are asked."""
        return not self.base.cost.atoms

    def start(self) -> Started:
        """Buy what the answers start from, once. For an owner's key."""
        return self._started(self._post("start", None, BaseReply)[0])

    @staticmethod
    def _started(found: BaseReply) -> Started:
        expects, certified = (
            tuple(Expected(one.error, one.about) for one in some) for some in (found.expects, found.certified)
        )
        return Started(found.what, loss(found.cost), loss(found.total), found.bought, expects, certified)

    # -- questions ----------------------------------------------------------------------------------------------------

    def ask(self, question: Askable, *, within: float | None = None) -> Answers:
        """Answer one question, as a session does. SQL is read by the server, in one request."""
        return self.answer(question if isinstance(question, str) else self.question(question), within=within)

    def dry_run(self, question: Askable, *, within: float | None = None) -> DryRun:
        """Whether a question's answer is known already, the most it could cost now, and why. Spends nothing."""
        return self.price(question if isinstance(question, str) else self.question(question), within=within)

    def answer(self, ask: Ask | str, *, within: float | None = None) -> Answers:
        found, again = self._post("ask", _body(ask, within), AskReply)
        return self._counted([read_answer(found.answer, again=again)])[0]

    def price(self, ask: Ask | str, *, within: float | None = None) -> DryRun:
        found, _ = self._post("cost", _body(ask, within), CostReply)
        left = None if found.left is None else loss(found.left)
        return DryRun(found.known, loss(found.cost_at_most), found.why, loss(found.total), left)

    def ask_many(self, questions: Sequence[Askable]) -> list[Answer]:
        """Answer a batch of questions (no GROUP BY), 1,000 with each request. They are checked before any is asked."""
        batch = batch_of(questions)
        if len(batch) > MAX_BATCH:  # the server sees one part after the other
            batch = [self._plain(question) for question in batch]
        asks = [question if isinstance(question, str) else self._plain(question) for question in batch]
        return [number_of(answer) for answer in self.answer_many(asks)]

    def answer_many(self, asks: Sequence[Ask | str]) -> list[Answers]:
        answers = list[Answers]()
        for part in parts_of([msgspec.json.encode(written(ask)) for ask in asks]):
            body = b'{"questions":[' + b",".join(part) + b"]}"
            try:
                found, again = self._post("ask_many", body, AskManyReply)
            except TacitError as error:
                if error.nothing_spent and any(answer.cost.atoms for answer in answers):
                    error.nothing_spent = False
                    error.sentence += " What was paid for before that stays spent."
                raise
            if len(found.answers) != len(part):
                raise other_version()
            answers += self._counted([read_answer(line, again=again) for line in found.answers])
        return answers

    def _counted(self, answers: list[Answers]) -> list[Answers]:
        with self._lock:
            self._paid += sum(answer.cost.atoms for answer in answers)
        return answers

    def publish(self, path: str | Path, *, overwrite: bool = False) -> str:
        """All that was released so far, as one open file for `tacit.read`. Returns the file's SHA-256."""
        with tempfile.TemporaryFile() as file:
            sent = self._transport.send("GET", self._path("published"), into=file)
            if sent.status != 200:
                raise _refusal(sent)
            digest = hashlib.sha256()
            file.seek(0)
            write_whole(Path(path), _chunks(file, digest), overwrite=overwrite, mode=0o644)
        return digest.hexdigest()

    def close(self) -> None:
        self._transport.close()

    def __repr__(self) -> str:
        return f"Client({self.url}, {self.data}: {self.rows:,} rows, {self._described.cells:,} cells)"

    # -- requests -----------------------------------------------------------------------------------------------------

    def _only(self) -> str:
        """The name of the server's one data set."""
        found = _read(self._transport.send("GET", "/v1/datasets"), DatasetsReply).datasets
        if len(found) != 1:
            listed = ", ".join(found) or "none"
            raise ConfigError(f'which data set is meant is said with data="…": the server has {listed}.')
        return found[0]

    def _path(self, of: str) -> str:
        return f"/v1/{quote(self._data, safe='')}/{of}"

    def _get(self, of: str, kind: type[S]) -> S:
        return _read(self._transport.send("GET", self._path(of)), kind)

    def _post(self, of: str, body: bytes | None, kind: type[S]) -> tuple[S, bool]:
        sent = self._transport.send("POST", self._path(of), body or b"")
        return _read(sent, kind), sent.again


def _budget(line: BudgetLine) -> Budget:
    return Budget(line.epsilon, line.delta)


def _body(ask: Ask | str, within: float | None) -> bytes:
    if within is not None:
        check_within(within)
    return msgspec.json.encode({"question": written(ask), **({} if within is None else {"within": within})})


def parts_of(questions: list[bytes]) -> Iterator[list[bytes]]:
    """A batch in parts that a server takes: not too many questions, and not too long."""
    part, size = list[bytes](), 0
    for question in questions:
        if part and (len(part) == MAX_BATCH or size + len(question) > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(question)
        size += len(question) + 1
    yield part


def _chunks(file: IO[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        yield chunk


def _read(sent: Sent, kind: type[S]) -> S:
    """What a server said, or the error that a session would raise."""
    if sent.status != 200:
        raise _refusal(sent)
    try:
        return msgspec.json.decode(sent.body, type=kind)
    except msgspec.MsgspecError:
        raise other_version() from None


def _refusal(sent: Sent) -> TacitError:
    """A refusal as the error that a session raises, with the server's sentence; the code is the server's."""
    try:
        said = msgspec.json.decode(sent.body, type=ErrorReply).error
    except msgspec.MsgspecError:
        strange = ServerError(f"The server answered with status {sent.status}, and not as a Tacit server does.")
        strange.nothing_spent = sent.status < 500 and not sent.again
        return strange
    # What only a server refuses about a question (its size, its shape in JSON) is a question that cannot be asked.
    kind = _CLASSES.get(said.code, InvalidQuery if sent.status in (400, 422) else ServerError)
    error = kind(said.message)
    # A question that is none cannot have been paid for when it was first sent; any other may have been, in part.
    sure = not sent.again or sent.status in (400, 401, 404, 422)
    error.code, error.nothing_spent = said.code, said.nothing_spent and sure
    return error
