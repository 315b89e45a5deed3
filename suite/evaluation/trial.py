"""One trial: every task of a scenario in turn, resumable at task boundaries (DESIGN 4)."""

from __future__ import annotations

from datetime import UTC, datetime

from suite.data import Scenario, build_scenario
from suite.errors import LearnerError, ProtocolError, StateError
from suite.evaluation.bench import Bench
from suite.evaluation.events import TaskDone, TrialStarted
from suite.evaluation.plan import TrialSpec
from suite.evaluation.task import TaskRun
from suite.status import Status
from suite.store.records import TrialRecord


def run_trial(bench: Bench, spec: TrialSpec) -> TrialRecord:
    """Run a trial from where the journal left it; a learner's failure ends it with its status.

    Raises InfrastructureError (retry it) and Interrupted (continue later); both leave the journal at a task boundary.
    """
    started = datetime.now(UTC)
    data_set = bench.load(spec.key.data_set)
    scenario = Scenario.parse(bench.track.scenario_for(spec.key.data_set))
    tasks = build_scenario(len(data_set), scenario, spec.scenario_seed)
    records, state = bench.log.resume(spec.key.id)
    bench.report(TrialStarted(spec, len(tasks), len(records)))
    status, message, tail = Status.OK, "", ""
    try:
        for task in tasks[len(records) :]:
            bench.stop.check()
            run = TaskRun(bench, spec, data_set, tasks, task, records)
            record, fresh = run.run(state)
            state = bench.log.commit_task(spec.key.id, record, fresh)
            records = [*records, record]
            bench.report(TaskDone(spec, record))
    except LearnerError as error:
        status, message, tail = error.status, str(error), error.log_tail
    except (ProtocolError, StateError) as error:
        status, message = Status.PROTOCOL_ERROR, str(error)
    return TrialRecord(
        key=spec.key,
        draw=spec.draw,
        status=status,
        message=message,
        log_tail=tail,
        tasks=records,
        scenario_seed=spec.scenario_seed,
        is_exclusive=bench.is_exclusive,
        started_at=started,
        ended_at=datetime.now(UTC),
    )
