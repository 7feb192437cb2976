"""A small durable job queue on one SQLite file: leases, retries, recovery. It knows nothing of fencepost.

A worker claims jobs for `LEASE` seconds and must send a heartbeat before they are over. What the dead leave behind,
`recover` puts back, or ends once a job has used up its attempts. `now` is in seconds; jobs are claimed oldest first.
"""

import sqlite3

LEASE = 60
RETRIED = frozenset({"RENDER_SERVICE_UNAVAILABLE", "RUNTIME_VITE_QUEUE_FULL"})
"""Errors of others, after which a job is worth another attempt."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    payload TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    worker TEXT,
    lease_until INTEGER,
    heartbeat_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    error TEXT
)
"""


class Queue:
    """One client of the queue, with a connection of its own."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)  # no transaction but those that we begin
        self.db.row_factory = sqlite3.Row
        self.db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        self.db.execute(SCHEMA)

    def close(self):
        self.db.close()

    def enqueue(self, payload, max_attempts=3):
        """Add a job; returns its id."""
        values = (payload, max_attempts)
        return self.db.execute("INSERT INTO jobs (payload, max_attempts) VALUES (?, ?)", values).lastrowid

    def jobs(self):
        """All jobs, oldest first."""
        return self.db.execute("SELECT * FROM jobs ORDER BY id").fetchall()

    def claim(self, worker, now, limit=1, lease=LEASE):
        """Take up to `limit` pending jobs for `lease` seconds; returns their ids."""
        self.db.execute("BEGIN IMMEDIATE")
        pending = "SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT ?"
        jobs = [row["id"] for row in self.db.execute(pending, (limit,))]
        for job in jobs:
            self.db.execute(
                "UPDATE jobs SET status = 'running', worker = ?, lease_until = ?, heartbeat_at = ?, started_at = ?,"
                " finished_at = NULL, error = NULL, attempts = attempts + 1 WHERE id = ?",
                (worker, now + lease, now, now, job),
            )
        self.db.execute("COMMIT")
        return jobs

    def heartbeat(self, job, worker, now, lease=LEASE):
        """Extend a valid lease to `lease` seconds from now; whether that was still possible."""
        return self._write("lease_until = :until, heartbeat_at = :now", job, worker, now, until=now + lease)

    def complete(self, job, worker, now):
        """Report success; whether it counts."""
        return self._write("status = 'succeeded', lease_until = NULL, finished_at = :now", job, worker, now)

    def fail(self, job, worker, now, error):
        """Report a failure; returns the job's status, or None if the report came too late."""
        again = "attempts < max_attempts" if error in RETRIED or error.endswith("_INTERRUPTED") else "0"
        ends = f"CASE WHEN {again} THEN NULL ELSE :now END"
        status = f"CASE WHEN {again} THEN 'pending' ELSE 'failed' END"
        changes = f"status = {status}, finished_at = {ends}, worker = NULL, lease_until = NULL, error = :error"
        if not self._write(changes, job, worker, now, error=error):
            return None
        return self.db.execute("SELECT status FROM jobs WHERE id = ?", (job,)).fetchone()["status"]

    def recover(self, now):
        """Put jobs back whose lease has run out, or end them; returns the id and status of each."""
        used_up = "attempts >= max_attempts"
        return self.db.execute(
            f"UPDATE jobs SET status = CASE WHEN {used_up} THEN 'failed' ELSE 'pending' END,"
            f" finished_at = CASE WHEN {used_up} THEN :now END,"
            f" error = CASE WHEN {used_up} THEN 'LEASE_TIMEOUT_MAX_ATTEMPTS' END,"
            " worker = NULL, lease_until = NULL"
            " WHERE status = 'running' AND lease_until <= :now RETURNING id, status",
            {"now": now},
        ).fetchall()

    def _write(self, changes, job, worker, now, **values):
        held = "id = :job AND status = 'running' AND worker = :worker AND lease_until > :now"
        values |= {"job": job, "worker": worker, "now": now}
        return self.db.execute(f"UPDATE jobs SET {changes} WHERE {held}", values).rowcount == 1
