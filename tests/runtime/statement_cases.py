"""Rows for every table, and what to ask statements about them."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

Values: TypeAlias = tuple[Any, ...]

LIMIT_A, RATE_B = '["limit:a"]', '["rate:b\\tx","limit:a"]'
GATES = (None, None, LIMIT_A, RATE_B, '["rate:b\\tü"]')
QUEUES = ("a", "B", "ä", "_", "A b")
LANES = ("loop", "thread")
STATUSES = ("ready", "ready", "ready", "delayed", "blocked", "running")
JOBS = range(1, 121)
SMALL, LARGE = -(2**63) + 1, 2**63 - 1


def _job(seq: int) -> Values:
    status = STATUSES[seq % 6]
    return (
        seq, f"job-{seq // 2}", f"task{seq % 3}", QUEUES[seq % 5], LANES[seq % 2], seq % 7 - 3,
        '{"tags":["x","ü"]}' if seq % 4 == 0 else None, '{"n": "\\u0000"}', seq, seq * 10, seq % 11 - 5,
        "ready" if status == "running" else status, seq * 10 if seq % 8 == 1 else None,
        '{"crashes":1}' if seq % 9 == 0 else None, f"t{seq}" if seq % 2 else None,
        GATES[seq % 7 % 5], '["acme",1]' if seq % 12 == 0 else None,
    )  # fmt: skip


def _changed(seq: int, status: str, parked: str | None) -> Values:
    worker = f"w{seq % 4}" if status == "running" else None
    started = seq if status == "running" else None
    rare = '{"crashes":1}' if seq % 9 == 2 else None
    return seq, status, seq * 10, seq % 11 - 5, 1, 2, worker, started, None, parked, int(seq % 4 == 3), rare


def _ended(seq: int) -> Values:
    return (
        seq, seq, seq, "failed", 1, 2, None, seq * 10, None, 0, '{"crashes":1}', None,
        seq if seq % 2 else None,
    )  # fmt: skip


def _line(queue: str, lane: str, gates: str, number: int) -> Values:
    return queue, lane, gates, number % 5, number, (None, "rate:b\tx", "limit:a")[number % 3]


SCENE: dict[str, list[Any]] = {
    "insert_job": [_job(seq) for seq in JOBS],
    "update_job": [
        *(_changed(seq, "running", None) for seq in JOBS if seq % 6 == 5 and seq <= 100),
        *(_changed(seq, "ready", "limit") for seq in JOBS if seq % 30 == 1),
        # Tried before, so that they expire no more.
        *((seq, "ready", seq, 2, 1, 2, None, 55, 100, None, 0, None) for seq in (55, 67)),
    ],
    "finish_job": [_ended(seq) for seq in JOBS if seq > 100],
    "add_dependency": [(seq, seq + step, "completed") for seq in range(1, 60) for step in (1, 3)],
    "add_line": [
        _line(queue, lane, gates, number)
        for number, (queue, lane, gates) in enumerate(
            (queue, lane, gates) for queue in QUEUES for lane in LANES for gates in GATES[2:]
        )
    ],
    "write_gate": [(f"rate:b\t{n}", n * 10, n % 2, n * 5 if n % 3 else None) for n in range(20)]
    + [("rate:b", 50, 0, None), ("rate:bc", 50, 0, None), ("limit:a", 1, 0, 7)],
    "write_finish": [(f"tenant{n}", n * 10) for n in range(10)],
    "add_log_line": [(seq, n, n, 1, "s", 20, f"line {n}") for seq in (1, 2, 110) for n in range(1, 8)],
    "add_fire": [
        (f"s{n % 3}", n * 10, n % 2 * n, n, 1, 1, "fired", n, f"job-{n}", None) for n in range(1, 30)
    ]
    + [("s1", 70, n, n, 1, 1, "by_hand", n, None, "x") for n in (5, 99)],
}


def _schedule(n: int) -> Values:
    return (
        f"s{n}", "t", QUEUES[n % 5], "loop", 0, None, "{}", "{}", n * 10 if n % 4 else None, 1, int(n == 5),
        None, n if n % 3 else None, 0, 0, "[1,2]" if n % 2 else None, n if n == 3 else None,
        n if n == 4 else None, None, None,
    )  # fmt: skip


SINGLY: list[tuple[str, Values]] = [
    *(("register_worker", (f"w{n}", "h", n, "ns", 1, "b", None, 1, 100, n * 10, "boot")) for n in range(5)),
    ("declare_dead", ("w3", 30)),
    ("end_lease", ("w2",)),
    ("declare_dead", ("w4", 30)),
    *(("write_known", (f"w{n}", '["loop"]', None)) for n in range(3)),
    *(("save_schedule", _schedule(n)) for n in range(8)),
    *(("remember_key", (f"key{n}", n, b"\0\xff", n * 10)) for n in range(1, 20)),
    *(("declare_rule", (rule, "{}")) for rule in ("limit:a", "rate:b", "rate:bc")),
    ("change_rule", ("rate:b", '{"changed":1}')),
    ("pause_queue", ("B", 5, "me")),
    ("delete_job", (json.dumps(list(range(101, 121))),)),
    ("mark_awaited", ("[29,41]",)),
]

SEQS = json.dumps([1, 2, 5, 17, 59, 60, 104, 105, 999])
IDS = json.dumps(["job-1", "job-55", "job-60", "none", "ü"])
LINES = json.dumps([[queue, "loop", gates] for queue in ("a", "B", "none") for gates in GATES[2:]])
TEXTS = json.dumps([RATE_B, LIMIT_A, '["none"]'])
KEYS = json.dumps(["rate:b\tx", "limit:a", "none"])
FORGET = ("forget_keys", "forget_fires", "forget_gates", "forget_tenants")
PLACES = [(key, seq) for key in (-5, 0, 2) for seq in (6, 50, 60, 100)]
PULLS = json.dumps([["rate:b\tx", "ä", "loop"], ["limit:a", "a", "thread"], ["none", "a", "loop"]])

LOOKS: list[tuple[str, Values]] = [
    *(
        ("claimable", (queue, lane, now, '["job-9"]', most))
        for queue in QUEUES
        for lane in LANES
        for now in (300, 490, 980)
        for most in (2, 50)
    ),
    *(("delayed_due", (at, most)) for at in (90, 300, 5000) for most in (3, 500)),
    *(("expired", (at, 50)) for at in (0, 250, 5000)),
    *((name, (f"w{n}",)) for name in ("held_by", "holdings", "holds_any", "gates_held_by") for n in range(5)),
    *(("lost_jobs", ("w1", '["task2","none"]', most)) for most in (2, 50)),
    ("parked_under", ("limit", 3)),
    *((name, (f"job-{n}",)) for name in ("live_by_id", "newest_live", "newest_ended") for n in (1, 30, 55)),
    *(
        ("by_token", (job_id, token))
        for job_id, token in (("job-5", "t11"), ("job-55", "t111"), ("job-5", "t111"), ("job-55", "t"))
    ),
    ("known_ids", (IDS,)),
    *((name, (SEQS,)) for name in ("live_by_seq", "states_by_seq", "ended_by_seq", "live_seqs", "fences")),
    *((name, (some,)) for name in ("live_by_seq", "known_ids", "dependents") for some in ("[]",)),
    *((name, (SEQS,)) for name in ("dependents", "still_waiting", "last_line")),
    *(("live_after", (after, 7)) for after in (0, 50)),
    *(
        (name, (status, task, queue, tag, before, 9))
        for name in ("list_live", "list_ended")
        for status, task, queue, tag in (
            (None, None, None, None),
            ("ready", None, None, None),
            ("failed", "task1", None, None),
            (None, None, "ä", "ü"),
            (None, None, None, "none"),
        )
        for before in (LARGE, 50)
    ),
    *(("ids", (prefix, f"{prefix}\U0010ffff", most)) for prefix in ("", "job-5", "x") for most in (3, 99)),
    *(
        (name, (now, now, most))
        for name in ("forgettable",)
        for now in (0, 111, 1100, 10_000)
        for most in (3, 99)
    ),
    *(("count_forgettable", (now, now)) for now in (0, 111, 1100, 10_000)),
    *(
        (name, ())
        for name in ("count_parked", "read_pruned", "read_virtual_time", "read_strategy", "has_jobs")
    ),
    *(
        (name, ())
        for name in ("pauses", "paused_queues", "known", "workers", "all_rules", "all_lines", "held")
    ),
    *((name, ()) for name in ("holders", "next_at", "next_fire", "ready_queues", "ready_line_queues")),
    ("gates_with_waiters", ()),
    ("latest", ()),
    *(("lease_holds", ("w2", at, boot)) for at in (10, 20) for boot in ("boot", "other")),
    *(("key_by_name", (f"key{n}", 100)) for n in (1, 15, 99)),
    ("read_rule", ("rate:b",)),
    ("rules", ('["rate:b","limit:a","none"]',)),
    ("finishes", ('["tenant1","none"]',)),
    ("gate_rows", ('["rate:b\\t1","limit:a","none"]',)),
    *(("gates_due", (at, most)) for at in (6, 7, 1000) for most in (2, 99)),
    *(("gates_of_rule", (rule,)) for rule in ("rate:b", "rate:bc", "none")),
    *(("gates_standing", (rule, 50, most)) for rule in ("rate:b", None) for most in (2, 99)),
    *(("gates_waited_for", (rule, most)) for rule in ("rate:b", "limit:a", None) for most in (1, 99)),
    ("gates_waited_at", (KEYS,)),
    ("line_places", (KEYS,)),
    *(("waiting_lines", (PULLS, most)) for most in (1, 99)),
    ("line_states", (LINES,)),
    *(
        ("next_in_lines", ("a", "loop", TEXTS, *behind, most))
        for behind in ((SMALL, -1), (0, 5))
        for most in (2, 9)
    ),
    *(
        ("claimable_in_lines", (queue, lane, TEXTS, *behind, 9, now, '["job-5"]'))
        for queue in QUEUES
        for lane in LANES
        for behind in ((SMALL, -1), (0, 5))
        for now in (0, 250, 970, 5000)
    ),
    *(
        ("first_in_line", (queue, lane, gates, 4))
        for queue in QUEUES
        for lane in LANES
        for gates in GATES[2:]
    ),
    *(
        ("ahead_in_line", (queue, lane, gates, *place, most))
        for queue in QUEUES
        for lane in LANES
        for gates in GATES[2:]
        for place in PLACES
        for most in (1, 99)
    ),
    *(
        ("ahead", (queue, lane, *place, most))
        for queue in QUEUES
        for lane in LANES
        for place in PLACES
        for most in (1, 99)
    ),
    *(
        (name, (queue, "loop", *place, 3))
        for name in ("ready_lines", "ready_lines_before")
        for queue in QUEUES
        for place in ((SMALL, -1), (2, 9), (LARGE, LARGE))
    ),
    *(("ready_lines_naming", (part, 99)) for part in ('"limit:a"', "rate:b", "", "none")),
    *((name, (queue, 99)) for name in ("queue_lines", "queue_due") for queue in QUEUES),
    *((name, (queue,)) for name in ("queue_heads", "queue_parked") for queue in QUEUES),
    *(("oldest_due", (now, most)) for now in (0, 500) for most in (10, 999)),
    *(("schedules", (after, since, 4)) for after in ("", "s3") for since in (None, 4)),
    *(
        ("due_schedules", (60, *behind, since, 9))
        for behind in ((-LARGE, ""), (20, "s2"))
        for since in (None, 4)
    ),
    *((name, ('["s1","s3","s4","none"]',)) for name in ("schedules_by_id", "standing_schedules")),
    ("following_schedules", ('["s1","s3","s4","none"]',)),
    ("taken_instants", ('[["s1",10],["s1",70],["s2",20],["none",1]]',)),
    *(("fires", ("s1", before, 4)) for before in (LARGE, 100)),
    *(("log", (seq, after, 3)) for seq in (1, 99) for after in (0, 5)),
]

CHANGES: list[tuple[str, Values]] = [
    ("reopen_job", (104,)),
    ("delete_finished", ("[104,105]",)),
    ("delete_dependencies", (SEQS,)),
    ("delete_dependents", (SEQS,)),
    ("mark_awaited", (SEQS,)),
    ("cut_log", (1, 3)),
    *((name, (SEQS,)) for name in ("forget_keys_of", "forget_logs", "delete_job", "delete_lines")),
    *((name, (at, most)) for name in FORGET for at, most in ((15, 1), (15, 99), (60, 99))),
    ("count_pruned", (7,)),
    ("write_virtual_time", (LARGE,)),
    ("reset_virtual_time", ()),
    ("write_virtual_time", (5,)),
    ("write_strategy", ("fifo",)),
    ("write_strategy", ("priority",)),
    *(("renew_lease", (worker, 1000, boot)) for worker in ("w1", "w3", "w9") for boot in ("boot", "other")),
    ("register_worker", ("w3", "x", 9, "y", 9, "z", "[]", 9, 9, 9, "boot")),
    ("change_known", ("w1", '["t"]')),
    ("change_known", ("w9", '["t"]')),
    ("write_known", ("w1", None, "[]")),
    ("delete_known", ("w2",)),
    ("delete_worker", ("w2",)),
    ("declare_rule", ("rate:b", '{"new":1}')),
    ("change_rule", ("rate:b", None)),
    ("pause_queue", ("B", 9, "other")),
    ("pause_queue", ("a", None, None)),
    ("resume_queue", ("B",)),
    ("remember_key", ("key1", 99, b"new", 99)),
    ("save_schedule", ("s1", *_schedule(4)[1:])),
    ("delete_schedule", ("s2",)),
    ("delete_fires", ("s2",)),
    ("delete_gates", (KEYS,)),
    ("delete_tenants", ()),
    ("return_permits", ("[[1,1],[2,2],[9,9]]",)),
    ("return_permits_of", ("w1", "[[5,1]]")),
]

WRITES: list[tuple[str, list[Any]]] = [
    ("claim_job", [(seq, seq + 3, seq + 4, f"w{seq}", 77) for seq in (3, 8, 9, 999)]),
    ("complete_jobs", [(seq, 2, 88, f"[{seq}]", seq) for seq in range(99, 0, -1)]),
    ("finish_job", [_ended(seq) for seq in (3, 8, 999)]),
    ("update_job", [_changed(seq, "delayed", None) for seq in (13, 14, 999)]),
    ("order_job", [(seq, -seq, '["t",2]' if seq % 2 else None) for seq in (*range(1, 50), 999)]),
    ("move_line", [(number, 50 - number, number, "none" if number % 2 else None) for number in range(1, 40)]),
    ("move_schedule_on", [(f"s{n}", n, 2, None, 1, 1, "[7]" if n % 2 else None, None, n) for n in range(9)]),
    ("keep_permit", [(seq, 1, f"w{seq % 5}", LIMIT_A, 9) for seq in range(1, 9)]),
    ("keep_permit", [(seq, 1, "w1", RATE_B, 10) for seq in range(5, 12)]),
    ("add_fire", [(f"s{n % 3}", n * 10, 0, 9, 9, 0, "missed", 9, None, "x") for n in range(1, 40)] * 2),
    ("write_gate", [(f"rate:b\t{n}", -n, 0, None) for n in range(10, 30)]),
    ("write_finish", [(f"tenant{n}", -n) for n in range(5, 15)]),
]
