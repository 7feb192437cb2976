"""Artifacts of the reference runtime, on both databases: only the current attempt's is referred to, and no object that
a job refers to is ever cleaned away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest
from fencepost.adapters.reference.adapter import ReferenceAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules
from fencepost.adapters.reference.runtime import REFUSED
from fencepost.adapters.reference.table import objects_of
from fencepost.conformance.interleave.exhaustive import Exhaustive
from fencepost.conformance.interleave.gate import Gate
from fencepost.conformance.interleave.played import Played
from fencepost.conformance.interleave.scheduler import Strategy, run_schedule
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BUILD
from reference_bench import NOW, Bench, bench_on, empty_bench, on, one_runner, opened_bench  # noqa: F401
from sqlalchemy import select

databases = pytest.mark.parametrize("database", ["sqlite", "pg"])


def stored(bench: Bench) -> list[c.Token]:
    """The attempts whose objects are in the store."""
    objects = objects_of(bench.queue, bench.adapter.runtime.table)
    assert objects is not None
    rows: Sequence[tuple[c.Token]] = bench.runner.run(
        bench.adapter.database.read(select(objects.c.attempt).order_by(objects.c.attempt))
    )
    return [attempt for (attempt,) in rows]


def read(bench: Bench, job: c.JobId) -> c.Token:
    outcome = bench.do(c.ReadArtifact(job))
    assert isinstance(outcome, o.Artifact)
    return outcome.attempt


@on(BUILD)
def test_a_reader_is_given_the_artifact_that_the_holder_has_put(bench: Bench) -> None:
    handle = bench.held()
    assert read(bench, handle.job) is None and bench.row().artifact is None
    before = bench.row()
    for _ in range(2):
        assert bench.do(c.PutArtifact(handle), NOW + 1, 1) == o.Accepted("running")
        assert bench.row() == before._replace(artifact=handle.token)
        assert read(bench, handle.job) == handle.token
    assert bench.do(c.Probe()) == o.Probed(0, 0)
    bench.do(c.Complete(handle), NOW + 2, 1)
    assert (read(bench, handle.job), bench.row().artifact) == (handle.token, handle.token)
    assert read(bench, bench.enqueue()) is None


@on(BUILD)
def test_a_superseded_attempt_s_upload_is_refused_and_gone_and_its_successor_s_stands(bench: Bench) -> None:
    stale = bench.held()
    bench.do(c.Release(stale), NOW, 1)
    assert isinstance(bench.do(c.PutArtifact(stale), NOW, 1), o.Rejected)
    assert stored(bench) == [] and bench.row().artifact is None
    (current,) = bench.claim(1)
    bench.do(c.PutArtifact(current), NOW, 1)
    before = bench.row()
    assert isinstance(bench.do(c.PutArtifact(stale), NOW, 1), o.Rejected)
    assert bench.row() == before and stored(bench) == [current.token] == [read(bench, current.job)]
    assert bench.do(c.Probe()) == o.Probed(0, 0)


@on(BUILD)
@pytest.mark.parametrize("ending", ["complete", "fail", "release", "recover", None])
def test_a_late_upload_of_the_attempt_that_the_job_refers_to_removes_nothing(bench: Bench, ending: str | None) -> None:
    handle = bench.held()
    bench.do(c.PutArtifact(handle), NOW, 1)
    late = NOW + bench.lease
    if ending == "recover":
        bench.sweep(late)
    elif ending is not None:
        bench.do({"complete": c.Complete, "fail": c.Fail, "release": c.Release}[ending](handle), NOW, 1)
    before = bench.row()
    assert isinstance(bench.do(c.PutArtifact(handle), late, 1), o.Rejected)
    assert bench.row() == before and before.artifact == handle.token
    assert stored(bench) == [handle.token] == [read(bench, handle.job)]


@on(BUILD)
def test_an_expired_holder_s_upload_stays_while_another_of_its_attempt_may_still_be_on_its_way(bench: Bench) -> None:
    handle = bench.held()
    assert isinstance(bench.do(c.PutArtifact(handle), NOW + bench.lease, 1), o.Rejected)
    assert stored(bench) == [handle.token] and bench.row().artifact is None
    bench.sweep(NOW + bench.lease)
    assert isinstance(bench.do(c.PutArtifact(handle), NOW + bench.lease, 1), o.Rejected)
    assert stored(bench) == []


@on(BUILD)
def test_a_reset_empties_the_store(bench: Bench) -> None:
    bench.do(c.PutArtifact(bench.held()), NOW, 1)
    assert len(stored(bench)) == 1
    bench.runner.run(bench.adapter.reset())
    assert stored(bench) == []


@on(BUILD)
def test_two_jobs_of_one_worker_have_an_artifact_each(bench: Bench) -> None:
    handles = bench.held(), bench.held()
    for handle in handles:
        bench.do(c.PutArtifact(handle), NOW, 1)
    assert [row.artifact for row in bench.rows()] == [handle.token for handle in handles] == stored(bench)


# While others write.


async def every_order(adapter: ReferenceAdapter, *nows: int) -> list[tuple[list[o.Outcome], o.Row]]:
    """One worker's upload, sent so many times and served at these instants, in every order of database statements: the
    answers, and the job's row at the end.
    """
    gates = [Gate(str(lane)) for lane, _ in enumerate(nows, 1)]
    for lane, gate in enumerate(gates, 1):
        gate.attach(await adapter.connection(lane))

    async def blocked(names: Collection[str]) -> set[str]:
        return {str(lane) for lane in await adapter.blocked([int(name) for name in names])}

    async def play(strategy: Strategy) -> Played:
        await adapter.reset()
        await adapter.actor(0).perform(c.Enqueue(), NOW)
        claimed = await adapter.actor(1).perform(c.Claim(1), NOW)
        assert isinstance(claimed, o.Claimed)
        put = c.PutArtifact(claimed.handles[0])
        lanes = [
            (gate, [lambda _, at=now, by=lane: adapter.actor(by).perform(put, at)])
            for lane, (gate, now) in enumerate(zip(gates, nows, strict=True), 1)
        ]
        waiting = blocked if adapter.capabilities.row_locks else None
        return await run_schedule([], lanes, strategy, now=lambda: NOW, blocked=waiting)

    ends = []
    async for played in Exhaustive(play).schedules():
        (row,) = (await adapter.snapshot()).values()
        ends.append(([ran.outcome for ran in played.commands], row))
    return ends


@databases
def test_an_upload_that_comes_late_spares_the_one_that_is_about_to_be_promoted(
    runner: asyncio.Runner, database: str
) -> None:
    with bench_on(runner, database, BUILD) as bench:
        ends = runner.run(every_order(bench.adapter, NOW, NOW + bench.lease))
    assert len(ends) > 20
    assert any(outcomes == [o.Accepted("running"), REFUSED] for outcomes, _ in ends)
    for outcomes, row in ends:
        assert row.artifact == (row.token if o.Accepted("running") in outcomes else None)


@databases
def test_it_does_not_where_the_clean_up_looks_for_the_reference_alone(runner: asyncio.Runner, database: str) -> None:
    with bench_on(runner, database, BUILD, CONTRACT.without("kept_if", "may_refer")) as bench:
        ends = runner.run(every_order(bench.adapter, NOW, NOW + bench.lease))
    assert any(outcomes == [o.Accepted("running"), REFUSED] and row.artifact is None for outcomes, row in ends)


# What may go wrong with it.


def put_twice_with_a_release_between(bench: Bench) -> tuple[c.Handle, c.Handle]:
    stale = bench.held()
    bench.do(c.PutArtifact(stale), NOW, 1)
    bench.do(c.Release(stale), NOW, 1)
    (current,) = bench.claim()
    bench.do(c.PutArtifact(current), NOW, 1)
    bench.do(c.PutArtifact(stale), NOW, 1)
    return stale, current


ATTEMPTS_MIXED_UP: list[Rules] = [
    CONTRACT.but("artifact_key", lambda job, attempt: str(job)),
    CONTRACT.without("fence.put_artifact", "same_attempt"),
]


@databases
@pytest.mark.parametrize("rules", ATTEMPTS_MIXED_UP)
def test_one_key_for_all_attempts_or_no_fence_gives_a_reader_the_older_one(
    runner: asyncio.Runner, database: str, rules: Rules
) -> None:
    with bench_on(runner, database, BUILD, rules) as bench:
        stale, current = put_twice_with_a_release_between(bench)
        assert (bench.row().token, bench.row().artifact) == (current.token, stale.token)


@databases
def test_a_claim_that_keeps_the_reference_shows_the_older_artifact_as_its_own(
    runner: asyncio.Runner, database: str
) -> None:
    with bench_on(runner, database, BUILD, CONTRACT.without("claim_set", "artifact_key")) as bench:
        stale = bench.held()
        bench.do(c.PutArtifact(stale), NOW, 1)
        bench.do(c.Release(stale), NOW, 1)
        bench.claim()
        assert bench.row().artifact == stale.token != bench.row().token


@databases
@pytest.mark.parametrize("rules", [CONTRACT.but("kept_if", ()), CONTRACT.without("kept_if", "refers")])
def test_a_clean_up_that_does_not_look_for_the_reference_removes_what_the_job_refers_to(
    runner: asyncio.Runner, database: str, rules: Rules
) -> None:
    with bench_on(runner, database, BUILD, rules) as bench:
        handle = bench.held()
        bench.do(c.PutArtifact(handle), NOW, 1)
        bench.do(c.Complete(handle), NOW, 1)
        assert isinstance(bench.do(c.PutArtifact(handle), NOW, 1), o.Rejected)
        assert (bench.row().artifact, stored(bench)) == (None, [])
