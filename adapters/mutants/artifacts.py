"""Faults of artifacts: stored by the wrong attempt, read from the wrong one, deleted under the job that refers to them
(FENCE-04, FENCE-07, INV-5). This module must never know of deadlines.
"""

from __future__ import annotations

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import Rules
from fencepost.model.commands import JobId, Token

from . import wrong as w
from .mutant import Mutant, add, both, but, drop, put


def _key_of_job(job: JobId, attempt: Token) -> str:
    return str(job)


def _promotes_after_the_end(rules: Rules) -> Rules:
    """No look at the status; and a null lease counts as one that has not run out, and ended rows keep their owner."""
    return both(
        drop("fence.put_artifact", "running"),
        put("fence.put_artifact", "lease_valid", w.lease_not_over),
        drop("writes.complete.succeeded", "worker_id"),
    )(rules)


ARTIFACT_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "put-artifact-older-attempt",
        "FENCE-04",
        "A late upload of the same worker's older attempt is promoted.",
        drop("fence.put_artifact", "same_attempt"),
        "build",
    ),
    Mutant(
        "put-artifact-anybody",
        "FENCE-02",
        "A superseded worker's late upload is promoted while another one holds the job.",
        drop("fence.put_artifact", "owned", "same_attempt"),
        "build",
        also=("FENCE-04",),
    ),
    Mutant(
        "put-artifact-after-the-end",
        "TERM-02",
        "An upload is promoted although the job has ended.",
        _promotes_after_the_end,
        "build",
        also=("FENCE-06",),
    ),
    Mutant(
        "artifact-key-of-job",
        "FENCE-04",
        "Every attempt uploads to the job's own key, so a late upload overwrites what its successor stored.",
        but("artifact_key", _key_of_job),
        "build",
        also=("FENCE-02", "TERM-02"),
    ),
    Mutant(
        "reader-takes-last",
        "FENCE-04",
        "A reader takes the last object that an attempt left, not the one that the job refers to (TileOPs PR#2142).",
        but("artifact_read", "last"),
        "build",
    ),
    Mutant(
        "complete-drops-artifact",
        "FENCE-04",
        "A completed job has lost its artifact.",
        add("writes.complete.succeeded", w.artifact_lost),
        "build",
    ),
    Mutant(
        "upload-counts",
        "ATT-01",
        "An upload counts an attempt.",
        add("writes.promote.promoted", p.count_attempt),
        "build",
    ),
    Mutant(
        "claim-keeps-artifact",
        "CLAIM-05",
        "A claim does not clear the artifact of the attempt before.",
        drop("claim_set", "artifact_key"),
        "build",
    ),
    Mutant(
        "clean-up-deletes-referred",
        "FENCE-07",
        "After a refused upload the object is deleted although the job refers to it.",
        drop("kept_if", "refers"),
        "build",
    ),
    Mutant(
        "clean-up-deletes-all",
        "FENCE-07",
        "After a refused upload the object is deleted, whoever has use for it.",
        but("kept_if", ()),
        "build",
    ),
    Mutant(
        "recover-forgets-attempt",
        "INV-5",
        "Recovery clears the attempt of a job and leaves its artifact.",
        add("recover.requeue", w.attempt_lost),
        "build",
    ),
    Mutant(
        "release-forgets-attempt",
        "INV-5",
        "A released job has an artifact and no attempt that made it.",
        add("writes.release.requeue", w.attempt_lost),
        "build",
    ),
    Mutant(
        "complete-forgets-attempt",
        "INV-5",
        "A completed job has an artifact and no attempt that made it.",
        add("writes.complete.succeeded", w.attempt_lost),
        "build",
        also=("FENCE-05",),
    ),
)
