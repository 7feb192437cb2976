"""The one versioned JSON result of a run, from which every other report is rendered, and the logic of verdicts.

It knows what was counted and what failed, never how it was found: no engine, no adapter, no database.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fencepost.model import applicability
from fencepost.model.clauses import JobLevel
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .document import ResultError, read_document, sealed, write_document

SCHEMA = 2
COUNTED = ("clauses", "certificates", "failures")

PairVerdict: TypeAlias = Literal["pass", "fail", "inconclusive", "not applicable", "not exercised"]
RunVerdict: TypeAlias = Literal["pass", "expected failures", "fail", "inconclusive", "self-check", "harness error"]
Standing: TypeAlias = PairVerdict | Literal["expected failure", "stale"]
Kind: TypeAlias = Literal["notimpl", "notyet", "never"]
LevelVerdict: TypeAlias = Literal["reached", "not reached", "not judged"]

NOT_BUILT = applicability.NOT_BUILT.reason
"""The reason of a `not exercised` pair that this version has no queue or verb for: outside the run's verdict."""

MINIMUM_TEETH = 100
"""Checks with teeth that exercise a pair, unless a profile asks for more."""
MINIMUM_SCHEDULES = 100
"""Distinct schedules that exercise a pair of two actors without a complete certificate."""


class Exit(IntEnum):
    """The exit codes of the command line; `USAGE` is the command line's own to give."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    INTERRUPTED = 2
    HARNESS = 3
    USAGE = 4
    NOTHING_MEASURED = 5


class Strict(BaseModel):
    """Base of all report values: frozen, and a key that nobody declared is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class ExpectedFailure(Strict):
    """What a team says of a pair that it knows to be no pass, and why: the queue lacks what it is about (`notimpl`),
    the fault is to be mended (`notyet`), or the queue is meant so (`never`).
    """

    kind: Kind
    reason: str = Field(min_length=1)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


class ClauseResult(Strict):
    """What was found for one (clause, queue) pair: checks made, and how many of them had teeth.

    `expected` excuses the pair and hides nothing: the verdict stays what was found.
    """

    id: str
    queue: str
    verdict: PairVerdict
    checked: int = Field(default=0, ge=0)
    teeth: int = Field(default=0, ge=0)
    reason: str = ""
    """Why it is not a pass: the declaration, what was missing, or what failed."""
    gap: bool = False
    """The queue may well have what the clause needs, and could not be driven to show it: at all where the pair is not
    applicable, in part where it passes.
    """
    expected: ExpectedFailure | None = None

    @property
    def standing(self) -> Standing:
        """What the pair counts as: its verdict, unless a failure was expected. `stale`: expected, but there is none."""
        if self.expected is None:
            return self.verdict
        return "stale" if self.verdict in ("pass", "not applicable") else "expected failure"

    @property
    def remark(self) -> str:
        """What there is to say about its standing: why it is no pass, or why that was expected."""
        if self.standing == "stale":
            return f"it is {self.verdict}, although its failure is expected ({self.expected}): remove that entry"
        if self.standing == "expected failure":
            return f"{self.expected} ({self.verdict}: {self.reason})"
        return self.reason

    @property
    def built(self) -> bool:
        """Whether the run's verdict may depend on this pair."""
        return not (self.verdict == "not exercised" and self.reason == NOT_BUILT)


class Certificate(Strict):
    """One search over the schedules of a pair of commands. `exhaustive` is false when a budget cut it, and
    where every order breaks another clause."""

    clause: str
    queue: str
    adapter: str
    pair: str
    """The commands that ran at once: "claim ‖ claim"."""
    schedules: int = Field(ge=0)
    exhaustive: bool
    bound: str
    """What the search was bounded by: jobs, actors, statements, or the budget that cut it."""


class FailureResult(Strict):
    """One counterexample: the check that failed, the length of its trace in commands, and its story."""

    clause: str
    reason: str
    why: str
    queue: str
    scenario: str | None = None
    """The path of the scenario file that replays it."""
    length: int = Field(ge=0)
    story: str
    expected: ExpectedFailure | None = None


class Obstacle(Strict):
    """What keeps a level from being reached, or judged: these clauses, all for the same reason."""

    clauses: tuple[str, ...]
    why: str


class LevelResult(Strict):
    """How a queue stands to one level, which is reached only with all levels below it."""

    queue: str
    level: JobLevel
    verdict: LevelVerdict
    obstacles: tuple[Obstacle, ...] = ()
    not_built: tuple[str, ...] = ()
    """The clauses up to this level that this version does not test: a level is reached without them."""


class Unmet(Strict):
    """A requirement that a queue does not meet: in which clauses, why, and what to do. Each is a failure of the run."""

    requirement: str
    """A clause, or a level as in `level-2`."""
    queue: str
    clauses: tuple[str, ...]
    why: str
    todo: str

    def __str__(self) -> str:
        which = "" if self.clauses == (self.requirement,) else f"{', '.join(self.clauses)}: "
        return f"{self.requirement} is required of {self.queue}, and is not met: {which}{self.why}; {self.todo}"


class Coverage(Strict):
    """How much was run; `seconds` of wall time."""

    examples: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)
    schedules: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Result(Strict):
    """A whole run. The file's footer is not part of it: `write` computes it and `read` checks it."""

    schema_version: Literal[2] = Field(default=2, alias="schema")
    verdict: RunVerdict
    interrupted: bool = False
    """Whether somebody ended it early; what it says is then about the part that was run."""
    adapter: str
    profile: str
    seed: int
    queues: tuple[str, ...]
    clauses: tuple[ClauseResult, ...]
    certificates: tuple[Certificate, ...] = ()
    failures: tuple[FailureResult, ...] = ()
    levels: tuple[LevelResult, ...] = ()
    required: tuple[str, ...] = ()
    """The clauses and levels that whoever ran it required."""
    unmet: tuple[Unmet, ...] = ()
    coverage: Coverage = Coverage()
    unclaimed: tuple[str, ...] = ()
    """What the adapter can do, and declares that it cannot: nobody asked for it."""
    unexercised: tuple[str, ...] = ()
    """What was left out of clauses that were checked, by a declaration of the adapter's."""
    versions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _no_hollow_green(self) -> Result:
        for pair in self.clauses:
            if pair.verdict == "pass" and not pair.checked:
                raise ValueError(f"{pair.id} on {pair.queue} passes, although it was never checked")
        unexpected = sum(failure.expected is None for failure in self.failures)
        implied = run_verdict(self.clauses, failures=unexpected, unmet=len(self.unmet), interrupted=self.interrupted)
        said = "pass" if self.verdict == "self-check" else self.verdict
        if said not in (implied, "harness error") and (said != "inconclusive" or implied == "fail"):
            raise ValueError(f"verdict {self.verdict!r}, although its clauses and failures say {implied!r}")
        return self

    def unmet_by(self, pair: ClauseResult) -> tuple[Unmet, ...]:
        """The requirements that are not met because of this pair."""
        return tuple(each for each in self.unmet if each.queue == pair.queue and pair.id in each.clauses)

    @property
    def measured(self) -> bool:
        """Whether anything at all was checked that applies to the queue."""
        checked = any(pair.checked and pair.verdict != "not applicable" for pair in self.clauses)
        return checked or bool(self.certificates or self.failures)


def pair_verdict(
    *,
    checked: int,
    teeth: int,
    failed: bool = False,
    built: bool = True,
    applicable: bool = True,
    complete: bool = False,
    schedules: int = 0,
    minimum: int = MINIMUM_TEETH,
) -> PairVerdict:
    """The verdict of one (clause, queue) pair.

    `complete`: a complete table, a direct test of the runtime, or a complete certificate covers it; `schedules`:
    distinct schedules under which it was judged. Either stands in for the `minimum` of checks with teeth, but what
    was never checked is not exercised, whatever was claimed to be complete.

    A failure outranks everything, so that no declaration and no gap in the build can hide one.
    """
    if failed:
        return "fail"
    if not built:
        return "not exercised"
    if not applicable:
        return "not applicable"
    if not (checked or schedules):
        return "not exercised"
    return "pass" if complete or teeth >= minimum or schedules >= MINIMUM_SCHEDULES else "inconclusive"


def run_verdict(
    pairs: Iterable[ClauseResult],
    *,
    failures: int = 0,
    unmet: int = 0,
    self_check: bool = False,
    fault: bool = False,
    interrupted: bool = False,
) -> RunVerdict:
    """The verdict of a run over all its pairs.

    `failures`: counterexamples found that nobody expected; `unmet`: requirements that are not met; `self_check`: the
    adapter only tests fencepost itself, so that a pass says nothing about a runtime; `fault`: the harness broke, so
    that nothing it said can be trusted; `interrupted`: it was cut short, so that what was not reached may be wrong.

    A failure that was expected is excused, unless it leaves a requirement unmet; an expectation that nothing meets any
    more is a failure itself.
    """
    inside = {pair.standing for pair in pairs if pair.built} - {"not applicable"}
    if fault:
        return "harness error"
    if failures or unmet or inside & {"fail", "stale"}:
        return "fail"
    if interrupted or not inside or inside - {"pass", "expected failure"}:
        return "inconclusive"
    if "expected failure" in inside:
        return "expected failures"
    return "self-check" if self_check else "pass"


def exit_code(result: Result) -> Exit:
    """The exit code of a run: an interruption outranks a harness fault, which may be its consequence."""
    if result.interrupted:
        return Exit.INTERRUPTED
    if result.verdict == "harness error":
        return Exit.HARNESS
    if not result.measured and not result.unmet:
        return Exit.NOTHING_MEASURED
    conformant = result.verdict in ("pass", "self-check", "expected failures")
    return Exit.CONFORMANT if conformant else Exit.NOT_CONFORMANT


def document(result: Result) -> dict[str, Any]:
    """The result as the JSON document that `write` writes, footer included."""
    return sealed(result.model_dump(mode="json", by_alias=True), COUNTED)


def write(result: Result, path: Path) -> None:
    """Write the result atomically; makes missing folders.

    Raises:
        OSError: the place can't be written to.
    """
    write_document(document(result), path)


def read(path: Path) -> Result:
    """Read a result that `write` wrote.

    Raises:
        ResultError: the file is missing, cut off, edited, of a newer schema, or no result.
    """
    body = read_document(path, SCHEMA, COUNTED)
    try:
        return Result.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ResultError(
            f"{path}: no result of a run: {place}: {first['msg']}; give a file that a run wrote"
        ) from error
