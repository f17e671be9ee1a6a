"""Schedules on the stage: what scenes about them have in common.

Steps are made as a worker makes them, on the schedule as it was seen; the answers of a step are compared
with what the store then holds, in every scene.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from betimes.core.events import Event
from betimes.core.job import FireKey, Job, JobSpec, Micros
from betimes.core.schedule import Advance, Fire, Fired, FireOutcome, ScheduleRecord
from betimes.testing.store_contract.stage import SECOND, Stage, Taken

MINUTE = 60 * SECOND
SPEC = JobSpec(task="t", queue="q", retry={"max_attempts": 3}, tags=("a",))


class ScheduleStage:
    """A scene's schedules; each is due a minute after it was saved, and then every minute."""

    def __init__(self, stage: Stage) -> None:
        """Begin without schedules."""
        self.stage = stage
        self.store = stage.store
        self._runs = 0

    def record(self, schedule_id: str = "nightly", *, in_s: float = 60.0, **fields: Any) -> ScheduleRecord:
        """A schedule, not saved."""
        usual: dict[str, Any] = {
            "spec": SPEC,
            "payload": b'[["\xc3\xbc"],{}]',
            "definition": '{"cron": "0 9 * * *", "tz": "Europe/Berlin"}',
            "next_fire_at": self.stage.now + round(in_s * SECOND),
        }
        return ScheduleRecord(id=schedule_id, **(usual | fields))

    async def save(self, schedule_id: str = "nightly", **fields: Any) -> ScheduleRecord:
        """Save a new schedule."""
        assert await self.store.save_schedule(self.record(schedule_id, **fields), expected_version=None)
        return await self.stands(schedule_id)

    async def due(self, schedule_id: str = "nightly", **fields: Any) -> ScheduleRecord:
        """Save a new schedule that is due now."""
        return await self.save(schedule_id, in_s=0.0, **fields)

    async def change(self, seen: ScheduleRecord, **fields: Any) -> ScheduleRecord:
        """Change a schedule against what was seen."""
        changed = replace(seen, **fields)
        assert await self.store.save_schedule(changed, expected_version=seen.version)
        return await self.stands(seen.id)

    async def stands(self, schedule_id: str = "nightly") -> ScheduleRecord:
        """A schedule as it stands now."""
        found = await self.store.schedule(schedule_id)
        assert found is not None, f"schedule {schedule_id} is not there"
        return found

    # steps

    def run(self, seen: ScheduleRecord, at: Micros, *, by_hand: bool = False, **options: Any) -> Job:
        """The job that an instant is to become."""
        self._runs += 1
        job = self.stage.job(**{"task": seen.spec.task, "queue": seen.spec.queue, **options})
        job.fire = FireKey(seen.id, at, by_hand)
        return job

    def step(self, seen: ScheduleRecord, job: Job | None = None, **fields: Any) -> Advance:
        """The step in which the next instant becomes a job, and the one a minute later is the next."""
        at = seen.next_fire_at
        assert at is not None, "only a schedule with a next fire can be due"
        following = None if seen.delay_us is not None else at + MINUTE
        due = (job or self.run(seen, at),)
        return Advance(**{"record": seen, "due": due, "next_fire_at": following, **fields})

    def by_hand(self, seen: ScheduleRecord, **fields: Any) -> Advance:
        """The step of a run that somebody asked for now."""
        job = self.run(seen, self.stage.now, by_hand=True)
        return Advance(record=seen, due=(job,), next_fire_at=seen.next_fire_at, by_hand=True, **fields)

    async def fire(self, *advances: Advance) -> list[Fired | None]:
        """Carry out steps, and compare the answers with what the store holds."""
        stage = self.stage
        answers, changes = await self.store.fire(advances)
        stage.see(changes)
        assert len(answers) == len(advances), "one answer for each step, by position"
        for advance, fired in zip(advances, answers, strict=True):
            if fired is not None:
                await self._compare(advance, fired)
        return answers

    async def _compare(self, advance: Advance, fired: Fired) -> None:
        seen = advance.record
        assert fired.record.version > seen.version, "every step is a new version"
        for job in fired.jobs:
            state = await self.stage.state(job)
            assert state.fire is not None
            assert state.fire.schedule == seen.id
            assert state.seq in fired.record.jobs or fired.record.jobs == ()
        history = await self.store.fires(seen.id, limit=1000)
        for fire in fired.fires:
            assert fire in history, f"{fire} was not remembered"

    async def fire_one(self, advance: Advance) -> Fired:
        """Carry out one step, which must count; then the schedule stands as the answer says."""
        (fired,) = await self.fire(advance)
        assert fired is not None, "the step did not count"
        assert await self.stands(advance.record.id) == fired.record
        return fired

    async def next(self, schedule_id: str = "nightly", **fields: Any) -> Fired:
        """Carry out the next step of a schedule as it stands."""
        return await self.fire_one(self.step(await self.stands(schedule_id), **fields))

    async def run_next(self, schedule_id: str = "nightly", **fields: Any) -> Job:
        """Carry out the next step of a schedule, which must make a job."""
        fired = await self.next(schedule_id, **fields)
        (job,) = fired.jobs
        return job

    async def started(self, schedule_id: str = "nightly", *, worker: str = "w1", **fields: Any) -> Taken:
        """Carry out the next step and claim its job, the only one that can be claimed."""
        job = await self.run_next(schedule_id, **fields)
        return await self.claim(job, worker=worker)

    async def claim(self, job: Job, *, worker: str = "w1") -> Taken:
        """Claim a job, the only one that can be claimed."""
        if worker not in {info.id for info, _ in await self.store.workers()}:
            await self.stage.worker(worker)
        (taken,) = await self.stage.claim(worker=worker)
        assert taken.job.seq == job.seq
        return taken

    async def end(self, taken: Taken, event: Event) -> None:
        """Report the end of an attempt, which must count."""
        assert await self.stage.report(taken, event) is not None


def outcomes(fires: tuple[Fire, ...] | list[Fire]) -> list[FireOutcome]:
    """What became of instants."""
    return [fire.outcome for fire in fires]
