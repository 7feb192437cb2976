"""Scenario files that can't be used are refused in words that say where, what is wrong and what to do."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from fencepost.model.queues import BACKFILL, QUEUES
from fencepost.scenarios import ScenarioError, load, loads
from hypothesis import given, settings
from hypothesis import strategies as st


def file(**changes: str | None) -> str:
    """A good file with some of its top-level entries changed, added or, with None, left out."""
    parts: dict[str, str | None] = {
        "fencepost": "1", "id": "x", "clause": "FENCE-02", "queue": "backfill", "title": "t",
        "steps": "[{do: enqueue}, {do: claim, worker: 1}]",
    }  # fmt: skip
    return "".join(f"{key}: {text}\n" for key, text in (parts | changes).items() if text is not None)


def steps(*texts: str) -> str:
    return file(steps="\n" + "\n".join(f"- {text}" for text in ("{do: enqueue}", "{do: claim, worker: 1}", *texts)))


LANES = "{actors: [[{do: recover}], [{do: tick}]]}"

REFUSED_FILES = {
    "empty": ("", "s: is empty; a scenario starts with `fencepost: 1`"),
    "no mapping": ("- 1\n", "s: is not a mapping"),
    "damaged": ("fencepost: 1\nid: [\n", "s, line 3: "),
    "control character": ("fencepost: \x07", "s: damaged YAML: "),
    "impossible date": ("title: 2026-13-45", "s: damaged YAML: "),
    "duplicate key": ("fencepost: 1\nid: a\nid: b\n", "s, line 3: key `id` stands twice; keep one"),
    "duplicate key in a step": (steps("{do: tick, do: probe}"), "s, line 9: key `do` stands twice"),
    "alias": ("a: &x 1\nb: *x\n", "s, line 2: aliases (*name) are not allowed; write it out"),
    "too many workers": (steps("{do: claim, worker: 10}"), "s, step 3: `worker`: input should be less than 10, not 10"),
    "merge": (steps("{<<: {do: tick, worker: 2}, do: tick}"), "s, line 9: merges (<<) are not allowed; write it out"),
    "no version": (file(fencepost=None), "s: is not a scenario file: it must say `fencepost: 1`"),
    "newer version": (file(fencepost="2"), "s: this file is version 2, this fencepost reads 1: upgrade"),
    "unknown key": (file(adapter="[pg]"), "s: unknown key `adapter`; did you mean `adapters`?"),
    "missing key": (file(title=None), "s: needs `title`"),
    "unquoted": (file(title="1122"), "s: `title`: input should be a valid string, not 1122; put it in quotes"),
    "id as path": (file(id="../x"), "s: `id`: string should match"),
    "unknown clause": (file(clause="FENCE-2"), "s: unknown clause `FENCE-2`; did you mean `FENCE-02`?"),
    "unknown queue": (file(queue="backfil"), "s: unknown queue `backfil`; did you mean `backfill`?"),
    "queue not built": (file(queue="image"), "s: queue `image` is not built in this version; built: build, "),
    "unknown adapter": (file(adapters="[sqlit]"), "s: unknown adapter `sqlit`; did you mean `sqlite`?"),
    "no adapters": (file(adapters="[]"), "s: `adapters`: list should have at least 1 item"),
    "found": (file(found="{adapter: pg, sed: 1}"), "s: unknown key `found.sed`"),
    "no steps": (file(steps="[]"), "s: has no steps"),
    "itself": (
        steps("{do: enqueue}", "{do: request_cancel, job: 4}"),
        "s, step 4: refers to step 4, which is no earlier",
    ),
    "no actor": (
        file(together="{clock: [{do: advance, seconds: 1}], actors: [[]]}"),
        "s: `together` has no step of an actor",
    ),
    "job of the future": (
        steps("{do: claim, worker: 1, expect: {claimed: [{job: 4}]}}", "{do: enqueue}"),
        "s, step 3: refers to step 4, which is no earlier",
    ),
    "clock acts": (
        file(together="{clock: [{do: tick}], actors: [[{do: tick}]]}"),
        "s, step 3: the clock's lane only moves the clock",
    ),
    "actor advances": (
        file(together="{actors: [[{do: advance, seconds: 1}]]}"),
        "s, step 3: an actor's lane cannot move the clock",
    ),
    "other lane": (
        file(together="{actors: [[{do: claim, worker: 1}], [{do: complete, handle: 3}]]}"),
        "s, step 4: refers to step 3, which is no earlier",
    ),
    "schedule of nothing": (file(schedule="'12'", adapters="[pg]"), "s: has a `schedule` but too few lanes"),
    "schedule of all": (file(schedule="'12'", together=LANES), "s: has a `schedule`, so it must name its `adapters`"),
    "schedule digit": (file(schedule="'123'", together=LANES, adapters="[pg]"), "s: schedule digit `3` is no lane"),
    "schedule clock": (
        file(schedule="'01'", together=LANES, adapters="[pg]"),
        "s: the schedule moves the clock more often",
    ),
    "octal": (steps("{do: advance, seconds: 010}"), "s, line 9: `010` is no plain decimal number; write it as one, or"),
    "sixties": (steps("{do: advance, seconds: 1:30}"), "s, line 9: `1:30` is no plain decimal number"),
    "hexadecimal": (steps("{do: advance, seconds: 0x10}"), "s, line 9: `0x10` is no plain decimal number"),
    "schedule number": (
        file(schedule="12", together=LANES, adapters="[pg]"),
        "s: `schedule`: input should be a valid string, not 12; put",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_bad_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        loads(text, "s")
    assert str(refusal.value).startswith(message)


REFUSED_STEPS = {
    "no command": ("{worker: 1}", "must be a mapping like {do: claim, worker: 1}, not {'worker': 1}"),
    "word for a step": ("tick", "must be a mapping like {do: claim, worker: 1}, not 'tick'"),
    "unknown do": ("{do: compete, handle: 2}", "unknown command `do: compete`; did you mean `complete`?"),
    "do is a list": ("{do: [tick]}", "unknown command `do: ['tick']`"),
    "unknown step key": ("{do: tick, wroker: 1}", "unknown key `wroker`; did you mean `worker`?"),
    "step needs": ("{do: complete}", "needs `handle`"),
    "wrong type": ("{do: tick, worker: one}", "`worker`: input should be a valid integer, not 'one'"),
    "no such worker": ("{do: tick, worker: 0}", "`worker`: input should be greater than or equal to 1"),
    "lease over at once": (
        "{do: claim, worker: 1, lease: 0}",
        "`lease`: input should be greater than or equal to 1, not 0",
    ),
    "negative lease": ("{do: renew, handle: 2, lease: -5}", "`lease`: input should be greater than or equal to 1"),
    "for ever": ("{do: advance, seconds: 1000000001}", "`seconds`: input should be less than or equal to 1000000000"),
    "far off": (
        "{do: advance_to, instant: expiry, job: 1, offset: -1000000001}",
        "`offset`: input should be greater than or equal to -1000000000",
    ),
    "due later": ("{do: enqueue, due_in: 60}", "queue `backfill` has no back-off, so no job of it is due later"),
    "to be due": ("{do: advance_to, instant: due, job: 1}", "queue `backfill` has no back-off"),
    "deadline": ("{do: enqueue, deadline_in: 60}", "queue `backfill` has no deadlines; leave that out"),
    "to a deadline": ("{do: advance_to, instant: deadline, job: 1}", "queue `backfill` has no deadlines"),
    "claim of one job": ("{do: claim, worker: 1, job: 1}", "queue `backfill` cannot be asked for one job; leave"),
    "verb of others": ("{do: skip, handle: 2}", "queue `backfill` has no `skip`; it has enqueue, claim, renew"),
    "verb of others inside": ("{do: atomically, commands: [{do: skip, handle: 2}]}", "queue `backfill` has no `skip`"),
    "job of step 0": ("{do: request_cancel, job: 0}", "refers to step 0, which is no earlier step"),
    "dangling": ("{do: complete, handle: 7}", "refers to step 7, which is no earlier step"),
    "wrong kind": ("{do: complete, handle: 1}", "refers to step 1, which is `enqueue`; it must be `claim`"),
    "no such handle": ("{do: complete, handle: {step: 2, nth: 1}}", "handle 1 of step 2: that claim makes at most 1"),
    "poison of nobody": ("{do: recover, hook: poison}", "hook `poison`: `job` is for `poison`"),
    "poison of no job": ("{do: recover, hook: {kind: poison, job: 2}}", "refers to step 2, which is `claim`"),
    "atomic claim": (
        "{do: atomically, commands: [{do: claim, worker: 1}]}",
        "`claim` cannot stand inside `atomically`",
    ),
    "expect inside": (
        "{do: atomically, commands: [{do: complete, handle: 2, expect: rejected}]}",
        "unknown key `expect`",
    ),
    "unknown outcome": ("{do: tick, expect: recoverd}", "unknown outcome `recoverd`; did you mean `recovered`?"),
    "no outcome": ("{do: tick, expect: 1}", "`expect` must be an outcome like `rejected`"),
    "two outcomes": ("{do: complete, handle: 2, expect: {rejected: {}, done: {}}}", "`expect` names rejected and done"),
    "any of one": ("{do: complete, handle: 2, expect: {any: [rejected]}}", "`any` stands alone"),
    "any beside another": (
        "{do: complete, handle: 2, expect: {any: [rejected, conflict], rejected: {}}}",
        "`any` stands alone",
    ),
    "conflict of a look": ("{do: probe, expect: conflict}", "`probe` cannot answer `conflict`; it answers probed"),
    "job twice": (
        "{do: recover, expect: {recovered: [{job: 1, status: pending}, {job: 1, status: pending}]}}",
        "`rows` of `recovered` names a job twice; name each once",
    ),
    "impossible outcome": ("{do: complete, handle: 2, expect: done}", "`complete` cannot answer `done`; it answers"),
    "outcome's key": ("{do: tick, expect: {recovered: [], cuont: 0}}", "unknown key `cuont`; did you mean `count`?"),
    "outcome's value": ("{do: tick, expect: {recovered: 1}}", "`recovered`: input should be a valid list, not 1"),
    "key said twice": (
        "{do: tick, expect: {recovered: [], rows: []}}",
        "unknown key `rows`: that is what stands under",
    ),
    "only the rest": ("{do: tick, expect: {recovered: {}, count: 1}}", "`recovered`: input should be a valid list"),
    "nothing to say": ("{do: complete, handle: 2, expect: {rejected: late}}", "`rejected` takes a mapping, not 'late'"),
    "other spelling": (
        "{do: acknowledge, handle: 2, expect: {accepted: canceled}}",
        "`canceled` is no status here; backfill stores",
    ),
    "other spelling of a row": (
        "{do: recover, expect: {recovered: [{job: 1, status: canceled}]}}",
        "`canceled` is no status here; backfill stores",
    ),
    "expected job": ("{do: claim, worker: 1, expect: {claimed: [{job: 2}]}}", "refers to step 2, which is `claim`"),
    "atomic count": (
        "{do: atomically, commands: [{do: complete, handle: 2}], expect: {atomic: []}}",
        "`atomic` lists 0 outcomes for 1",
    ),
}
"""What may be wrong with a third step, after an `enqueue` and a `claim`."""

REFUSED_OF_BUILDS = {
    "cancel": ("{do: request_cancel, job: 1}", "queue `build` has no `request_cancel`; it has enqueue, claim"),
    "unknown field": ("{do: plant, job: 1, field: due, seconds: 1}", "`field`: input should be 'deadline' or 'lease'"),
    "claim of a claim": ("{do: claim, worker: 1, job: 2}", "refers to step 2, which is `claim`; it must be `enqueue`"),
    "atomic upload": (
        "{do: atomically, commands: [{do: put_artifact, handle: 2}]}",
        "`put_artifact` cannot stand inside `atomically`",
    ),
    "artifact of a job": (
        "{do: read_artifact, job: 1, expect: {artifact: 1}}",
        "refers to step 1, which is `enqueue`; it must be `claim`",
    ),
    "artifact of nobody": (
        "{do: read_artifact, job: 1, expect: {artifact: none}}",
        "`artifact`: must be the step of the claim that began the attempt, or null for none, not 'none'",
    ),
    "artifact of the future": ("{do: read_artifact, job: 1, expect: {artifact: 9}}", "refers to step 9, which is no"),
    "no such attempt": (
        "{do: read_artifact, job: 1, expect: {artifact: {step: 2, nth: 1}}}",
        "handle 1 of step 2: that claim makes at most 1",
    ),
    "artifact of an upload": (
        "{do: put_artifact, handle: 2, expect: {artifact: 2}}",
        "`put_artifact` cannot answer `artifact`; it answers accepted, rejected",
    ),
}
"""The same on `build`."""

REFUSED_PLANTS = {
    "screenshot": ("deadline", "has no `plant`; it has enqueue"),
    "due": ("deadline", "has no deadlines"),
    "late": ("lease", "does not look at a lease that is left on a pending job; leave that out"),
}
"""What cannot be planted in queues that have the one, or the other, or neither."""


@pytest.mark.parametrize(
    ("queue", "step", "message"),
    [("backfill", *refused) for refused in REFUSED_STEPS.values()]
    + [("build", *refused) for refused in REFUSED_OF_BUILDS.values()],
    ids=[*REFUSED_STEPS, *REFUSED_OF_BUILDS],
)
def test_a_bad_step_is_refused(queue: str, step: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        loads(steps(step).replace("backfill", queue), "s")
    assert str(refusal.value).startswith(f"s, step 3: {message}")


@pytest.mark.parametrize(("queue", "field", "message"), [(key, *each) for key, each in REFUSED_PLANTS.items()])
def test_what_a_queue_does_not_look_at_is_not_planted(
    queue: str, field: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUEUES, "due", replace(BACKFILL, key="due", claims_by_id=True))
    monkeypatch.setitem(QUEUES, "late", replace(BACKFILL, key="late", deadline=True))
    with pytest.raises(ScenarioError) as refusal:
        loads(steps(f"{{do: plant, job: 1, field: {field}, seconds: 5}}").replace("backfill", queue), "s")
    assert str(refusal.value).startswith(f"s, step 3: queue `{queue}` {message}")


def test_the_file_that_the_refused_ones_vary_is_good() -> None:
    loads(file())
    loads(steps("{do: claim, worker: 1, limit: 0, lease: 1}", "{do: configure, lease: -1, heartbeat: 0}"))
    loads(file(queue="mutation", steps="[{do: enqueue, due_in: 60}, {do: advance_to, instant: due, job: 1}]"))
    loads(steps("{do: complete, handle: 2, expect: rejected}"))
    builds = steps(
        "{do: claim, worker: 1, job: 1}",
        "{do: plant, job: 1, field: deadline, seconds: -5}",
        "{do: plant, job: 1, field: lease, seconds: 5}",
        "{do: advance_to, instant: deadline, job: 1}",
        "{do: enqueue, deadline_in: 5}",
        "{do: read_artifact, job: 1, expect: {any: [{artifact: 2}, {artifact: null}]}}",
    )
    loads(builds.replace("backfill", "build"))
    loads(file(schedule="'12'", together=LANES, adapters="[pg, memory, 'their.queue:Adapter']"))


WORDS = st.none() | st.booleans() | st.integers() | st.sampled_from(("tick", "any", "x")) | st.dates()
ANYTHING = st.recursive(WORDS, lambda some: st.lists(some) | st.dictionaries(WORDS, some))


@settings(deadline=None)
@given(st.data())
def test_whatever_stands_in_a_file_is_refused_or_read(data: st.DataObject) -> None:
    raw = yaml.safe_load(
        file(
            steps="[{do: enqueue}, {do: claim, worker: 1, hook: ok, expect: {claimed: [{job: 1}]}},"
            " {do: atomically, commands: [{do: renew, handle: {step: 2, nth: 0}}], expect: {atomic: [rejected]}}]",
            together="{clock: [{do: advance, seconds: 1}], actors: [[{do: recover, hook: {kind: poison, job: 1}}]]}",
            schedule="'101'",
            adapters="[pg]",
        )
    )
    loads(yaml.safe_dump(raw), "s")
    place = raw
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = data.draw(ANYTHING)
            break
        place = place[key]
    with contextlib.suppress(ScenarioError):
        loads(yaml.safe_dump(raw), "s")


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"title: \xe9")
    with pytest.raises(ScenarioError, match="is not UTF-8"):
        load(tmp_path / "latin.yaml")
