"""What six steps test with teeth on each queue of the contract: the pins of the model's checks, by clause."""

from __future__ import annotations

REACHED: dict[str, set[str]] = {
    "ATT-01": {
        "claim: running row", "complete: cancelled row", "complete: succeeded row", "fail: cancelled row",
        "fail: failed row", "fail: pending row", "renew: running row",
    },
    "ATT-02": {
        "fail: INFRA retried", "fail: INFRA, budget of 1 used up", "fail: LEASE retried",
        "fail: LEASE, budget of 1 used up", "fail: pending row",
    },
    "CANCEL-01": {
        "cancel: pending", "request_cancel: cancelled row", "request_cancel: pending row",
        "request_cancel: undone by its caller",
    },
    "CANCEL-02": {
        "cancel: running", "cancel: running, by its parent", "request_cancel: another row",
        "request_cancel: running row",
    },
    "CANCEL-03": {"cancel: requested before", "cancel: requested before, by its parent", "cancel: terminal"},
    "CANCEL-04": {
        "acknowledge: cancelled row", "acknowledge: with a request", "acknowledge: without a request",
        "checkpoint: False", "checkpoint: True", "checkpoint: changes nothing",
    },
    "CANCEL-05": {"sweep: expired with a cancel request"},
    "CANCEL-06": {
        "complete: after a cancel request", "fail: CANCEL after a cancel request",
        "fail: CONTENT after a cancel request", "fail: INFRA after a cancel request",
        "fail: LEASE after a cancel request", "fail: LIMIT after a cancel request",
    },
    "CLAIM-01": {"claim: running job", "claim: terminal job"},
    "CLAIM-02": {"claim: cancel requested", "sweep: pending with a cancel request"},
    "CLAIM-05": {"claim: running row"},
    "CLAIM-07": {"claim: limit", "claim: max_claims", "claim: running but not returned"},
    "CLAIM-08": {"claim: oldest first"},
    "CLAIM-09": {"probe: after a claim", "probe: after an empty claim"},
    "CLAIM-12": {"claim: hook given the claimed jobs", "claim: hook raised, rolled back"},
    "CLAIM-14": {"claim: past an excluded head"},
    "ERR-01": {"classify: family", "fail: code of no family"},
    "ERR-02": {
        "fail: CANCEL family ends cancelled", "fail: CONTENT not retried", "fail: FENCE code",
        "fail: INFRA not retried", "fail: LIMIT not retried",
    },
    "ERR-03": {"fail: cancelled row", "fail: code of another family", "fail: failed row", "fail: pending row"},
    "FENCE-01": {
        "acknowledge: another row", "acknowledge: expired", "acknowledge: expired in this tick", "acknowledge: held",
        "acknowledge: held in its last tick", "checkpoint: another row", "complete: another row", "complete: expired",
        "complete: expired in this tick", "complete: held", "complete: held in its last tick",
        "complete: undone by its caller", "fail: another row", "fail: expired", "fail: expired in this tick",
        "fail: held", "fail: held in its last tick", "release: another row", "release: expired",
        "release: expired in this tick", "release: held", "release: held in its last tick", "renew: another row",
    },
    "FENCE-02": {
        "acknowledge: another owner", "acknowledge: pending again", "complete: another owner",
        "complete: pending again", "fail: another owner", "fail: pending again", "release: another owner",
        "release: pending again",
    },
    "FENCE-06": {
        "acknowledge: a rejection says so", "acknowledge: cancelled row", "complete: a rejection says so",
        "complete: cancelled row", "complete: succeeded row", "fail: a rejection says so", "fail: cancelled row",
        "fail: failed row", "fail: pending row", "release: a rejection says so", "release: cancelled row",
        "release: pending row", "renew: a rejection says so", "renew: running row",
    },
    "INV-6": {"a row with a cancel request stays unclaimed"},
    "INV-7": {"a terminal row stays unclaimed"},
    "LEASE-01": {"configure: broken ratio", "configure: kept ratio"},
    "LEASE-02": {
        "renew: another owner", "renew: pending again", "renew: terminal, cancelled", "renew: terminal, failed",
        "renew: terminal, succeeded",
    },
    "LEASE-03": {"renew: held", "renew: held in its last tick", "renew: running row"},
    "LEASE-04": {"renew: expired", "renew: expired in this tick"},
    "LEASE-07": {"sweep: expiry as recorded"},
    "REC-01": {
        "sweep: cancelled row", "sweep: expired, re-queued", "sweep: failed row", "sweep: pending row",
        "sweep: expired, re-queued while its owner holds another job",
    },
    "REC-02": {"sweep: valid lease untouched", "sweep: valid lease untouched in its last tick"},
    "REC-03": {"sweep: cancelled row", "sweep: expired, budget used up", "sweep: failed row", "sweep: pending row"},
    "REC-04": {"tick: recovers"},
    "REC-05": {"start-up: foreign prefix untouched", "start-up: own prefix recovered"},
    "REC-06": {"sweep: nothing found, nothing written"},
    "REC-08": {"sweep: hook given the changed jobs", "sweep: hook raised, rolled back"},
    "REC-10": {"sweep: count", "sweep: count after a failed batch"},
    "REC-12": {"sweep: past a failed batch"},
    "REL-01": {
        "release: after a cancel request", "release: cancelled row", "release: given back", "release: pending row",
    },
    "TERM-01": {
        "acknowledge: cancelled row", "claim: running row", "complete: cancelled row", "complete: succeeded",
        "complete: succeeded row", "fail: cancelled row", "fail: failed row", "fail: pending row",
        "release: cancelled row", "release: pending row", "renew: running row", "request_cancel: cancelled row",
        "request_cancel: pending row", "request_cancel: running row", "sweep: cancelled row", "sweep: failed row",
        "sweep: pending row",
    },
    "TERM-02": {
        "acknowledge: terminal row", "acknowledge: terminal, cancelled", "atomically: terminal row",
        "checkpoint: terminal row", "claim: terminal row", "complete: terminal row", "complete: terminal, failed",
        "complete: terminal, succeeded", "fail: terminal row", "fail: terminal, cancelled", "fail: terminal, failed",
        "fail: terminal, succeeded", "probe: terminal row", "recover: terminal row", "release: terminal row",
        "release: terminal, cancelled", "release: terminal, failed", "release: terminal, succeeded",
        "renew: terminal row", "request_cancel: terminal row", "start_up: terminal row", "tick: terminal row",
    },
    "TERM-03": {
        "acknowledge: cancelled row", "complete: cancelled row", "complete: succeeded row", "fail: cancelled row",
        "fail: failed row", "sweep: cancelled row", "sweep: failed row",
    },
    "TERM-04": {
        "acknowledge: cancelled row", "complete: cancelled row", "complete: succeeded row", "fail: cancelled row",
        "fail: failed row", "release: cancelled row", "request_cancel: cancelled row", "sweep: cancelled row",
        "sweep: failed row",
    },
}  # fmt: skip
"""On an owner-only queue without back-off."""

MORE: dict[str, dict[str, set[str]]] = {
    "backfill": {},
    "mutation": {
        "ATT-02": {"fail: due strictly later"},
        "CLAIM-03": {"claim: not due"},
        "CLAIM-05": {"claim: generation + 1"},
        "CLAIM-08": {"claim: oldest first, free in this very tick"},
        "FENCE-03": {
            "acknowledge: older token", "claim: a token never repeats", "complete: older token", "fail: older token",
            "release: older token", "renew: older token",
        },
        "REC-09": {"sweep: generation per row"},
    },
    "screenshot": {
        "ATT-01": {"skip: cancelled row", "skip: skipped row"},
        "FENCE-01": {
            "skip: another row", "skip: expired", "skip: expired in this tick", "skip: held",
            "skip: held in its last tick",
        },
        "FENCE-02": {"skip: another owner", "skip: pending again"},
        "FENCE-06": {"skip: a rejection says so", "skip: cancelled row", "skip: skipped row"},
        "LEASE-02": {"renew: terminal, skipped"},
        "REL-01": {"skip: after a cancel request"},
        "TERM-01": {"skip: cancelled row", "skip: skipped", "skip: skipped row"},
        "TERM-02": {
            "complete: terminal, skipped", "fail: terminal, skipped", "release: terminal, skipped",
            "skip: terminal row", "skip: terminal, cancelled", "skip: terminal, failed", "skip: terminal, skipped",
            "skip: terminal, succeeded",
        },
        "TERM-03": {"skip: cancelled row", "skip: skipped row"},
        "TERM-04": {"skip: cancelled row"},
    },
    "build": {
        "ATT-01": {"put_artifact: running row"},
        "CLAIM-01": {"claim: running job, asked for by its id", "claim: terminal job, asked for by its id"},
        "CLAIM-04": {
            "claim: deadline passed", "claim: deadline passed, asked for by its id", "claim: lease cut to the deadline",
        },
        "CLAIM-15": {
            "claim: a lease left on it", "claim: a lease left on it, asked for by its id",
            "claim: no other job than the one asked for", "claim: the job asked for",
        },
        "CLAIM-08": {"claim: oldest first, free in this very tick"},
        "DEAD-01": {
            "complete: deadline passed", "fail: deadline passed", "put_artifact: deadline passed",
            "release: deadline passed", "sweep: expired past its deadline", "sweep: pending before its deadline",
            "sweep: pending past its deadline",
        },
        "ERR-02": {"fail: CANCEL family ends failed"},
        "FENCE-01": {
            "put_artifact: another row", "put_artifact: expired", "put_artifact: expired in this tick",
            "put_artifact: held", "put_artifact: held in its last tick",
        },
        "FENCE-02": {
            "put_artifact: another owner", "put_artifact: another owner, over another attempt's artifact",
            "put_artifact: pending again",
        },
        "FENCE-03": {
            "claim: a token never repeats", "claim: a token that no other job has had", "complete: older token",
            "fail: older token", "release: older token", "renew: older token",
        },
        "FENCE-04": {
            "complete: succeeded row", "fail: failed row", "fail: pending row", "put_artifact: older token",
            "put_artifact: older token, over another attempt's artifact", "put_artifact: running row",
            "put_artifact: stored", "read_artifact: changes nothing", "read_artifact: none yet",
            "read_artifact: the current attempt's", "release: pending row", "renew: running row",
            "sweep: failed row", "sweep: pending row",
        },
        "FENCE-05": {"complete: repeated by the same attempt"},
        "FENCE-06": {"put_artifact: a rejection says so", "put_artifact: running row"},
        "FENCE-07": {
            "put_artifact: refused, and the failed job refers to its key",
            "put_artifact: refused, and the pending job refers to its key",
            "put_artifact: refused, and the running job refers to its key",
            "put_artifact: refused, and the succeeded job refers to its key",
        },
        "INV-5": {
            "complete: succeeded row", "fail: failed row", "fail: pending row", "release: pending row",
            "sweep: failed row", "sweep: pending row",
        },
        "LEASE-03": {"renew: deadline passed", "renew: lease cut to the deadline"},
        "TERM-01": {"put_artifact: running row"},
        "TERM-02": {
            "put_artifact: terminal row", "put_artifact: terminal, failed", "put_artifact: terminal, succeeded",
            "read_artifact: terminal row",
        },
    },
}  # fmt: skip
"""What generations and a back-off add; what skips add; what deadlines, attempts, artifacts and claims of one job do."""

LESS: dict[str, dict[str, set[str]]] = {
    "build": {"ERR-03": {"fail: failed row", "fail: pending row"}, "TERM-02": {"atomically: terminal row"}},
}
"""What is tested otherwise, or not: no code is stored, and of what a caller's transaction holds only a cancel looks at
others' rows.
"""


def of_cancel(reason: str) -> bool:
    """Whether only a queue with a cancel can test this."""
    return "cancel" in reason or reason.startswith(("acknowledge: ", "checkpoint: "))


def reached(key: str, cancels: bool) -> dict[str, set[str]]:
    """The checks of this queue, by clause."""
    less, more = LESS.get(key, {}), MORE[key]
    common = {
        clause: {each for each in reasons if cancels or not of_cancel(each)} - less.get(clause, set())
        for clause, reasons in REACHED.items()
    }
    found = {clause: common.get(clause, set()) | more.get(clause, set()) for clause in {*common, *more}}
    return {clause: reasons for clause, reasons in found.items() if reasons}
