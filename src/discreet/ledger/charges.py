"""What is charged for a question, and what is stored of it.

The law of one question. Within a data set a question, by its exact text, is **answered once, and no run is free**:

1. `charge` writes the charge durably before it returns, and makes its caller the one who runs the question.
2. `complete` stores the outcome, and returns what is stored. **Only what `complete` or `replay` or `Charge.payload`
   returns may be shown.** Once there is an outcome, everybody who asks gets it for free, for ever.
3. While the run is alive (`stores/runs.py`), nobody else begins another: `charge` returns a charge that is not `own`.
4. A run that ended without an outcome is never repeated for free, whatever ended it: a signal, a full disk, a payload
   that is too large, a lost server. Whoever looked at the data may have learned something on the way. The next
   `charge` of the question is a further **attempt**, charged for its own events like the first; the earlier
   attempt is void from then on, and `complete` stores nothing for it.

So each charge covers one run, of which at most the stored outcome is seen, whichever process dies when. There are no
refunds. A failure that could depend on the data is an outcome: complete the charge with it. To draw a fresh answer, ask
a different text. If `charge` itself failed, and it is not known whether it was written, nothing was run: called again
on the same handle, it pays once. If `complete` failed so, the run has looked at the data: if its outcome is in the
books after all, asking again is free, and otherwise it is charged again. A child of a fork has a handle of its own:
what its parent may still run once, it may not run too.

A question may live long, as a stream does. It is charged once for a number of `steps`, and each step is a release of
its own: its charge names the `parent` entry and its number, and costs nothing. Steps come in order, each after the one
before has its outcome. A further attempt of a step would not be covered by what was paid, so a step whose run ended
without an outcome is the last one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from threading import get_ident
from typing import Any

from discreet.accounting.flattening import as_event
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event, Nothing
from discreet.core.exact import natural
from discreet.core.forks import Home
from discreet.ledger.accounts import admit, filter_of, lineage
from discreet.ledger.encoding import (
    Path,
    account_path,
    attempt_key,
    canonical,
    digest,
    events_from_plain,
    events_to_plain,
    plain_text,
    step_key,
    study_key,
)
from discreet.ledger.errors import CommitUnknown, LedgerDamaged, LedgerUnavailable, StreamEnded
from discreet.ledger.handle import LONGEST_TEXT, Handle
from discreet.ledger.records import Account, Charge, ChargeRow, ReleaseRow, Step
from discreet.ledger.stores.store import Books, Look, Store
from discreet.noise.entropy import system

PER_STUDY = "study"
"""What the books say of a data set whose answers are kept per study."""
LONGEST_QUESTION = 2**20
LONGEST_EVENTS = 2**20
LONGEST_PAYLOAD = 2**28
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between looks for the outcome of a question that is run elsewhere; they grow."""
UNKNOWN_CHARGE = "nothing was run: the same question asked again on this handle is paid for once, whichever it was"
NOT_STORED = "the run is over: asking again is free if its outcome is in the books after all, and charged again if not"


class _Void(Exception):
    """A run whose charge was written, and made void by a later attempt or paid for other events: it needs a new key."""


class Charges(Handle):
    """The charges in a set of books, with what was released for them."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        super().__init__(store, clock)
        self._begun: dict[tuple[Path, str], str] = {}
        """The keys of runs whose charges failed, and may be in the books all the same: of this process alone."""
        self._running: dict[str, int] = {}
        """The threads of this handle that run questions, by the keys of their runs."""
        self._home = Home()

    def charge(
        self,
        account: Path,
        events: Event | Iterable[Event],
        question: str,
        *,
        note: str = "",
        steps: int = 0,
    ) -> Charge:
        """Charges the events to the account and all above it, or raises and changes nothing.

        `question` is a text that says exactly what is asked, with all parameters: it is the key of the law above, and
        only its digest is kept. On return the charge is on the disk.

        A question that is run elsewhere or has an outcome is not charged for, whatever events are given: another
        version may plan it otherwise. Then the charge that is returned names the `events` that were paid. Nobody gets
        more for less by that. Whoever charged little under this text ran what that paid for, and all that others see is
        the outcome that was stored then, which costs no more however often and by whomever it is read. No caller runs
        anything on a charge that is not `own`, and none is `own` whose events are others than those given. (Whoever may
        write to the books can store a wrong payload under any text: the certificate of it tells the events, and
        `confirm` who signed for it.)

        The events pay for `steps` further releases, if any are given (`ask_step`).
        """
        return self._charged(account, as_event(events), _asked(question), note, [], steps)

    def _charged(
        self, account: Path, event: Event, asked: str, note: str, claimed: list[str], part: int | Step
    ) -> Charge:
        """What `charge` does. `claimed` gets the key of each run before it is claimed: a signal may take the charge
        from whoever waits for it, and with it the only other word of the key."""
        path = account_path(account, charged=True)
        plain = events_to_plain(event.events if isinstance(event, Composed) else (event,))
        if len(canonical(plain)) > LONGEST_EVENTS:
            bound = f"written in {LONGEST_EVENTS} characters"
            raise InvalidArgument("events", f"{len(plain)} events", bound, "merge equal ones with Repeated, or split")
        plain_text("note", note, LONGEST_TEXT, empty=True)
        if not isinstance(part, Step) and part:
            natural("steps", part)
        if self._home.left:
            self._begun, self._home = {}, Home()
        given = (path, event, plain, asked, part)
        begun = self._begun.pop((path[:2], asked), None)
        if begun is not None:
            claimed.append(begun)
            with suppress(_Void):
                return self._claimed(*given, begun, note)
        claimed.append(f"{system().bits(128):032x}")
        return self._claimed(*given, claimed[-1], note)

    def _claimed(
        self,
        path: Path,
        event: Event,
        plain: list[dict[str, Any]],
        asked: str,
        part: int | Step,
        run: str,
        note: str,
    ) -> Charge:
        """The charge, by a run whose lock is held from before it is written."""
        try:
            self._store.runs.claim(run)
            charge = self._charge(path, event, plain, asked, part, run, note)
        except LedgerUnavailable as failure:
            self._store.runs.release(run)
            self._begun[path[:2], asked] = run
            if isinstance(failure, CommitUnknown):
                raise CommitUnknown(UNKNOWN_CHARGE) from None
            raise
        except BaseException:
            self._store.runs.release(run)
            raise
        if charge.payload is not None or not charge.own:
            self._store.runs.release(run)
        return charge

    def _charge(
        self,
        path: Path,
        event: Event,
        plain: list[dict[str, Any]],
        asked: str,
        part: int | Step,
        run: str,
        note: str,
    ) -> Charge:
        with self._writing(Look(path=path, question=asked, request=run)) as books:
            accounts = lineage(books, path)
            if isinstance(part, Step) and accounts[0].answers == PER_STUDY:
                self._assert_own_study(books, path, part)
            # A step is of the charge that paid for it, whoever may see that: it has one key for ever.
            wanted, asked = asked, asked if isinstance(part, Step) else self._key(books, accounts[0], path, asked)
            attempt, earlier = self._last_attempt(books, path[0], asked)
            if earlier is not None:
                known = self._again(books, earlier, run, attempt_key(asked, attempt + 1))
                if known.own and known.payload is None and events_to_plain(known.events) != plain:
                    raise _Void  # its caller would run what this charge did not pay for
                if known.payload is not None or known.own or self._store.runs.is_alive(known.run):
                    return known
                if isinstance(part, Step):
                    raise StreamEnded(part.number)
                attempt += 1
            if books.charge_with(path[0], run) is not None:
                raise _Void
            key = attempt_key(asked, attempt)
            filters = {each.path: filter_of(each, accounts[0]) for each in accounts}
            if isinstance(part, Step):
                self._assert_next(books, path, part)
            else:
                admit(filters, accounts[0].unit, event)
            spent = str(filters[path[:1]].spent)
            states = [filter.state() for filter in filters.values()]
            now = self._now()
            content: dict[str, Any] = {"kind": "charge", "account": path, "events": plain}
            content |= {"question": key, "request": run}
            if attempt > 1:
                content |= {"attempt": attempt, "first": asked}
            if asked != wanted:
                content |= {"asked": wanted}
            if part:
                content |= vars(part) if isinstance(part, Step) else {"steps": part}
            entry = self._append(books, content | {"note": note, "spent": spent, "states": states, "time": now})
            books.put_charge(ChargeRow(entry.sequence, path, key, run, now))
            books.put_states({each.path: canonical(state) for each, state in zip(accounts, states, strict=True)})
        successor = attempt_key(asked, attempt + 1)
        told = (self.id, entry.sequence, entry.hash, path, key, spent, now)
        return Charge(*told, True, None, run, True, events_from_plain(plain), successor)

    def _assert_own_study(self, books: Books, path: Path, step: Step) -> None:
        entry = books.entry(step.parent)
        if entry is None or tuple(entry.content.get("account", ()))[:2] != path[:2]:
            raise InvalidArgument("parent", step.parent, f"the entry of a charge of {path}", "ask as this account")

    def _assert_next(self, books: Books, path: Path, step: Step) -> None:
        """That a step is paid for, by the same account, and comes next."""
        entry = books.entry(step.parent)
        paid = {} if entry is None else entry.content
        if paid.get("kind") != "charge" or paid["account"] != [*path] or books.release(step.parent) is None:
            bound = f"the entry of a charge of {path} that has its outcome"
            raise InvalidArgument("parent", step.parent, bound, "ask the long-lived question first, as this account")
        if step.number > paid.get("steps", 0):
            remedy = "ask for a new one: what was paid covers no more"
            raise InvalidArgument("number", step.number, f"one of its {paid.get('steps', 0)} steps", remedy)
        if step.number > 1:
            before = books.charge_for(path[0], step_key(step.parent, step.number - 1))
            if before is None or books.release(before.sequence) is None:
                bound = "the one after the last that has its outcome"
                raise InvalidArgument("number", step.number, bound, "ask for its steps in order")

    def _key(self, books: Books, dataset: Account | None, path: Path, asked: str) -> str:
        """Under what a question is kept: itself, or where answers are kept per study, itself in that study. What was
        answered to a study stays free for it whenever that changes: where all share, until there is one for all."""
        kept = study_key(asked, path)
        _, earlier = self._last_attempt(books, path[0], asked)
        if dataset is not None and dataset.answers == PER_STUDY:
            return asked if earlier is not None and earlier.path[:2] == path[:2] else kept
        if earlier is not None and books.release(earlier.sequence) is not None:
            return asked
        _, own = self._last_attempt(books, path[0], kept)
        return asked if own is None or books.release(own.sequence) is None else kept

    def _last_attempt(self, books: Books, dataset: str, asked: str) -> tuple[int, ChargeRow | None]:
        """The last time that a question was charged, and how often it was."""
        attempt, row = 1, books.charge_for(dataset, asked)
        if row is None or books.release(row.sequence) is not None:
            return attempt, row
        while (later := books.charge_for(dataset, attempt_key(asked, attempt + 1))) is not None:
            attempt, row = attempt + 1, later
        return attempt, row

    def abandon(self, charge: Charge) -> None:
        """Says that the run of the charge ended without an outcome: who asks again pays again."""
        self._store.runs.release(charge.run)

    def complete(self, charge: Charge, payload: bytes, *, statement: str | None = None) -> bytes:
        """Stores the release for the charge, unless there is one, and returns the one that is stored: only that may be
        shown. On return it is on the disk. `statement` is the digest of what a certificate says of it
        (`confirmation.claims`): it is written with the release, both or neither."""
        if not charge.own:
            raise InvalidArgument("charge", charge, "one that its caller is to run", "wait for whoever runs it")
        try:
            if not isinstance(payload, bytes) or len(payload) > LONGEST_PAYLOAD:
                raise InvalidArgument("payload", type(payload), f"bytes, at most {LONGEST_PAYLOAD}", "serialise it")
            stored = self._complete(charge, payload, statement)
        except LedgerUnavailable as failure:
            first = "" if isinstance(failure, CommitUnknown) else f"{failure.remedy}; "
            raise LedgerUnavailable(failure.reason, f"{first}{NOT_STORED}") from None
        finally:
            # Stored or not, the run is over: whoever asks again must not wait for it.
            self._store.runs.release(charge.run)
        if stored is None:
            reason = "this run was taken for dead, and the question was charged again"
            raise LedgerUnavailable(reason, "ask again: what the later run gave is shown")
        return stored

    def ask(
        self,
        account: Path,
        events: Event | Iterable[Event],
        question: str,
        run: Callable[[], bytes],
        *,
        note: str = "",
        state: Callable[[Charge, bytes], str | None] = lambda charge, payload: None,
        steps: int = 0,
    ) -> Charge:
        """The charge for a question with its stored outcome, by the law above.

        `run` is called after the charge if there is no outcome yet and nobody else runs the question; while somebody
        does, this waits. Whatever ends `run` before its outcome is stored ends this too, and asking again costs again.
        `state` is then given the charge and the outcome, and returns what `complete` writes beside it, if anything; the
        outcome is stored even if it fails. The events pay for `steps` further releases, if any are given.
        """
        return self._run(account, as_event(events), _asked(question), run, note, state, steps)

    def ask_step(
        self,
        account: Path,
        step: Step,
        run: Callable[[], bytes],
        *,
        note: str = "",
        state: Callable[[Charge, bytes], str | None] = lambda charge, payload: None,
    ) -> Charge:
        """The stored outcome of one step of a question that was charged with `steps`; `run` is called if there is none
        yet. It costs nothing beyond what its parent did."""
        return self._run(account, Nothing(), step_key(step.parent, step.number), run, note, state, step)

    def _run(
        self,
        account: Path,
        event: Event,
        asked: str,
        run: Callable[[], bytes],
        note: str,
        state: Callable[[Charge, bytes], str | None],
        part: int | Step,
    ) -> Charge:
        while True:
            claimed: list[str] = []
            try:
                charge = self._charged(account, event, asked, note, claimed, part)
                if charge.payload is not None:
                    return charge
                if charge.own:
                    self._running[charge.run] = get_ident()
                    return replace(charge, payload=self._stated(charge, run(), state))
            finally:
                for key in claimed:
                    self._store.runs.release(key)
                    self._running.pop(key, None)
            self._wait_for(charge, account, asked, part if isinstance(part, Step) else None)

    def _stated(self, charge: Charge, payload: bytes, state: Callable[[Charge, bytes], str | None]) -> bytes:
        """Stores the outcome with what is stated about it, and without if nothing could be stated."""
        try:
            statement = state(charge, payload)
        except BaseException:
            self.complete(charge, payload)
            raise
        return self.complete(charge, payload, statement=statement)

    def _wait_for(self, charge: Charge, account: Path, asked: str, step: Step | None) -> None:
        """Returns when a question that is run elsewhere has an outcome, or its run is over without one."""
        if self._running.get(charge.run) == get_ident():
            raise InvalidArgument("question", asked, "not asked by its own run", "do not ask it there")
        pause = SHORTEST_PAUSE
        while self._stored(account, asked, step) is None and self._store.runs.is_alive(charge.run):
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _complete(self, charge: Charge, payload: bytes, statement: str | None) -> bytes | None:
        """What is stored; None if the run is void."""
        look = Look(path=charge.account[:1], question=charge.successor or None, charge=charge.sequence)
        with self._writing(look) as books:
            entry = books.entry(charge.sequence)
            mine = entry is not None and (charge.ledger, charge.hash) == (self.id, entry.hash)
            if entry is None or not mine or entry.content["kind"] != "charge":
                raise InvalidArgument("charge", charge, "one that this ledger made", "charge first")
            stored = books.release(charge.sequence)
            if stored is not None:
                return stored.payload
            content = entry.content
            first, attempt = content.get("first", content["question"]), content.get("attempt", 1)
            if books.charge_for(content["account"][0], attempt_key(first, attempt + 1)) is not None:
                return None
            content = {"kind": "release", "charge": charge.sequence, "size": len(payload), "payload": digest(payload)}
            made = self._append(books, content)
            books.put_release(ReleaseRow(charge.sequence, made.sequence, payload))
            if statement is not None:
                self._append(books, {"kind": "certify", "charge": charge.sequence, "statement": statement})
        return payload

    def replay(self, account: Path, question: str) -> bytes | None:
        """The release of an identical question on the same data set, for free; None if there is none."""
        charge = self.stored(account, question)
        return None if charge is None else charge.payload

    def stored(self, account: Path, question: str) -> Charge | None:
        """The charge of an identical question on the same data set (or study, where they are kept so), with its events
        and its release; None if none is stored."""
        return self._stored(account, _asked(question))

    def stored_step(self, account: Path, step: Step) -> Charge | None:
        """The charge of one step with its release; None if none is stored, or answers are kept per study and it is of
        another one."""
        path = account_path(account, charged=True)
        found = self._stored(account, step_key(step.parent, step.number), step)
        if found is None or found.account[:2] == path[:2] or self._is_shared(path):
            return found
        return None

    def _is_shared(self, path: Path) -> bool:
        """Whether all who may ask about a data set see each other's answers."""
        with self._reading(Look(path=path[:1])) as books:
            dataset = books.account(path[:1])
        return dataset is None or dataset.answers != PER_STUDY

    def _stored(self, account: Path, asked: str, step: Step | None = None) -> Charge | None:
        path = account_path(account, charged=True)
        with self._reading(Look(path=path[:1], question=asked)) as books:
            asked = asked if step is not None else self._key(books, books.account(path[:1]), path, asked)
            attempt, row = self._last_attempt(books, path[0], asked)
            if row is None or books.release(row.sequence) is None:
                return None
            return self._again(books, row, "", attempt_key(asked, attempt + 1))

    def _again(self, books: Books, row: ChargeRow, run: str, successor: str) -> Charge:
        """An earlier charge, as whoever asks again with the key `run` gets it."""
        entry = books.entry(row.sequence)
        if entry is None:
            raise LedgerDamaged(f"entry {row.sequence} is missing", "restore the last good copy")
        content = entry.content
        stored = books.release(row.sequence)
        payload = None if stored is None else stored.payload
        known, own = row.request or "", row.request == run
        told = (self.id, row.sequence, entry.hash, row.path, row.question, content["spent"], content["time"])
        return Charge(*told, False, payload, known, own, events_from_plain(content["events"]), successor)


def _asked(question: str) -> str:
    """The digest of a question's text, which is all that the books keep of it."""
    return digest(plain_text("question", question, LONGEST_QUESTION))
