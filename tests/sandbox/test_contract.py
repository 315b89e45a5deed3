"""What every runtime owes to the trial loop, and what none lets a learner do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from suite.errors import ImageError, LearnerError
from suite.protocol import DescribeParams, Manifest, ShutdownParams, read_array, summarise_state
from suite.sandbox import Isolation
from suite.status import Status
from tests.sandbox.support import LABELS, LIMITS, Runtime, learn, predict, setup, write_data


def failure(runtime: Runtime, act: str, amount: int = 0, seconds: float = 30) -> LearnerError:
    """How a task ends in which the learner does `act`."""
    with runtime.cell(f"learn:{act}", amount) as cell, pytest.raises(LearnerError) as caught:
        learn(cell, seconds)
    return caught.value


def refusal(runtime: Runtime, act: str, amount: int, destination: Path) -> LearnerError:
    """How collecting ends after a task in which the learner does `act`."""
    with runtime.cell(f"learn:{act}", amount) as cell:
        if runtime.name != "docker":
            cell_out(cell.inside.out)
        learn(cell)
        with pytest.raises(LearnerError) as caught:
            cell.collect(destination)
    return caught.value


def cell_out(path: str) -> None:
    """Tell the learner of this process where its output lies; others find it by themselves."""
    from tests.sandbox.learners import acts

    acts.OUT["path"] = Path(path)


# --- a task and a prediction ------------------------------------------------------------------------------------------


def test_a_learner_describes_itself_as_it_was_identified(runtime: Runtime) -> None:
    identity = runtime.sandbox.identify(runtime.acts)
    with runtime.raw_cell() as cell:
        answer = Manifest.model_validate(cell.call("describe", DescribeParams(), 30))
    assert answer == identity.manifest
    assert answer.name == "Acts"


def test_equal_images_have_equal_fingerprints(runtime: Runtime) -> None:
    first, second = runtime.sandbox.identify(runtime.acts), runtime.sandbox.identify(runtime.acts)
    assert first == second
    assert len(first.fingerprint) == 64


def test_a_state_goes_from_one_cell_to_another(runtime: Runtime, tmp_path: Path) -> None:
    with runtime.cell() as cell:
        result = learn(cell)
        files = cell.collect(tmp_path / "state")
    assert result["stored_parameters"] == 3
    assert result["exemplars"] == {"0": 1}
    assert files == sorted((tmp_path / "state").iterdir())
    assert summarise_state(tmp_path / "state").elements == 2 * 4 * 4 * 3
    with runtime.cell() as cell:
        predict(cell, tmp_path / "state")
        cell.collect(tmp_path / "scores")
    scores = read_array(tmp_path / "scores" / "scores.npy", (3, 2))
    assert scores.argmax(axis=1).tolist() == [1, 0, 1]


def test_outputs_lie_under_equal_modes_and_times(runtime: Runtime, tmp_path: Path) -> None:
    with runtime.cell() as cell:
        learn(cell)
        files = cell.collect(tmp_path / "state")
    assert {(f.stat().st_mode & 0o7777, f.stat().st_mtime, f.stat().st_nlink) for f in files} == {
        (0o644, 946_684_800, 1)
    }


def test_notes_arrive_in_order_with_the_time_of_the_host(runtime: Runtime) -> None:
    notes = []
    with runtime.cell("learn:notes") as cell:
        before = time.monotonic()
        learn(cell, on_note=lambda note, arrived: notes.append((note, arrived)))
        after = time.monotonic()
    assert [note.method for note, _ in notes] == ["progress", "stage", "stage"]
    assert notes[0][0].model_dump()["params"]["metrics"] == {"loss": 0.25}
    times = [arrived for _, arrived in notes]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after


def test_an_error_of_the_listener_reaches_the_caller(runtime: Runtime) -> None:
    class Stop(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stop

    with runtime.cell("learn:notes") as cell, pytest.raises(Stop):
        learn(cell, on_note=stop)


def test_a_learner_can_be_told_to_end(runtime: Runtime) -> None:
    with runtime.cell() as cell:
        assert cell.call("shutdown", ShutdownParams(), 30) == {}


def test_deliveries_look_the_same_whatever_they_hold(runtime: Runtime) -> None:
    if runtime.name == "docker":
        pytest.skip("looked at from inside, in the tests of the strict runtime")
    with runtime.cell() as cell:
        cell.pause()
        with cell.delivery("data") as folder:
            assert list(folder.iterdir()) == []
            write_data(folder)
            next(folder.iterdir()).chmod(0o755)
        looks = {(f.stat().st_mode & 0o7777, f.stat().st_mtime) for f in Path(cell.inside.data).iterdir()}
    assert looks == {(0o444, 946_684_800)}


def test_a_hard_link_is_never_delivered(runtime: Runtime, tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.write_bytes(b"x")
    with runtime.cell() as cell:
        cell.pause()
        with pytest.raises(ValueError, match="no regular file of its own"), cell.delivery("data") as folder:
            (folder / "00000.npy").hardlink_to(original)


def test_a_disk_that_refuses_a_delivery_is_no_fault_of_the_learner(runtime: Runtime) -> None:
    from suite.errors import InfrastructureError

    with runtime.cell() as cell:
        cell.pause()
        with pytest.raises(InfrastructureError, match="No space left"), cell.delivery("data"):
            raise OSError(28, "No space left on device")


def test_a_paused_cell_is_not_called(runtime: Runtime) -> None:
    with runtime.cell() as cell:
        cell.pause()
        cell.pause()
        with pytest.raises(RuntimeError, match="resume"):
            cell.call("shutdown", ShutdownParams(), 5)
        cell.resume()
        cell.resume()
        cell.call("shutdown", ShutdownParams(), 5)


def test_its_isolation_says_whether_results_are_ranked(runtime: Runtime) -> None:
    assert runtime.sandbox.isolation.is_ranked == (runtime.name == "docker")


def test_what_is_no_learner_is_refused(runtime: Runtime) -> None:
    with pytest.raises(ImageError):
        runtime.sandbox.identify("nothing-of-this-name:Nothing" if runtime.name != "docker" else "nothing/here:1")


# --- failures that the learner owns up to -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("raise", Status.CRASHED),
        ("diverge", Status.DIVERGED),
        ("memory_error", Status.OUT_OF_MEMORY),
        ("refused_state", Status.PROTOCOL_ERROR),
    ],
)
def test_an_error_answer_becomes_its_status(runtime: Runtime, act: str, status: Status) -> None:
    assert failure(runtime, act).status is status


def test_an_exception_of_the_author_comes_with_the_end_of_the_log(runtime: Runtime) -> None:
    error = failure(runtime, "raise")
    assert "ValueError: boom" in error.message
    assert "ValueError: boom" in error.log_tail
    assert len(error.log_tail) <= LIMITS.log_bytes


def test_learning_before_setup_is_a_protocol_error(runtime: Runtime) -> None:
    with runtime.raw_cell() as cell, pytest.raises(LearnerError, match="before setup") as caught:
        learn(cell)
    assert caught.value.status is Status.PROTOCOL_ERROR


def test_a_method_that_the_learner_lacks_is_a_protocol_error(runtime: Runtime) -> None:
    from suite.protocol import ClassifierParams

    with runtime.cell() as cell, pytest.raises(LearnerError, match="classifier") as caught:
        cell.call("classifier", ClassifierParams(classes=2, task=0, state=cell.inside.state, out=cell.inside.out), 30)
    assert caught.value.status is Status.PROTOCOL_ERROR


def test_an_error_in_setup_is_the_learners(runtime: Runtime) -> None:
    with runtime.raw_cell() as cell, pytest.raises(LearnerError, match="boom"):
        cell.call("setup", setup("setup:raise"), 30)


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "amount", "status", "words"),
    [
        ("many_files", 17, Status.STATE_TOO_LARGE, "16 files"),
        ("link", 0, Status.PROTOCOL_ERROR, "not a regular file"),
        ("folder", 0, Status.PROTOCOL_ERROR, "not a regular file"),
        ("fifo", 0, Status.PROTOCOL_ERROR, "not a regular file"),
        ("odd_name", 0, Status.PROTOCOL_ERROR, "a b\\x1b"),
    ],
)
def test_only_plain_files_come_out(
    runtime: Runtime, tmp_path: Path, act: str, amount: int, status: Status, words: str
) -> None:
    if act == "fifo" and runtime.sandbox.isolation is Isolation.GVISOR:
        pytest.skip("gVisor's fifos exist inside it only")
    error = refusal(runtime, act, amount, tmp_path / "out")
    assert error.status is status
    assert words in error.message


def test_a_state_over_the_limit_is_too_large(runtime: Runtime, tmp_path: Path) -> None:
    from dataclasses import replace

    limits = replace(LIMITS, output_bytes=2 << 20)
    with runtime.cell("learn:big_state", (2 << 20) + 1000, limits=limits) as cell:
        learn(cell)
        with pytest.raises(LearnerError) as caught:
            cell.collect(tmp_path / "out")
    assert caught.value.status is Status.STATE_TOO_LARGE


def test_a_state_at_the_limit_comes_out(runtime: Runtime, tmp_path: Path) -> None:
    with runtime.cell("learn:big_state", (2 << 20)) as cell:
        learn(cell)
        cell.collect(tmp_path / "out")
    assert summarise_state(tmp_path / "out").bytes > 2 << 20


# --- endings ----------------------------------------------------------------------------------------------------------


def test_a_cell_is_closed_twice_and_after_failure(runtime: Runtime) -> None:
    with runtime.cell("learn:raise") as cell:
        with pytest.raises(LearnerError):
            learn(cell)
        cell.close()
        cell.close()
        cell.usage()
        assert isinstance(cell.log_tail(), str)


def test_closing_leaves_no_folder(runtime: Runtime, tmp_path: Path) -> None:
    with runtime.cell() as cell:
        learn(cell)
        seen = Path(cell.inside.data)
    assert not seen.exists()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_usage_grows(runtime: Runtime) -> None:
    with runtime.cell() as cell:
        before = cell.usage().cpu_seconds
        learn(cell)
        after = cell.usage()
    assert before is not None
    assert after.cpu_seconds is not None
    assert after.cpu_seconds >= before >= 0
    if runtime.name != "memory":
        assert after.peak_memory_bytes is not None
        assert 5 << 20 < after.peak_memory_bytes < LIMITS.memory_bytes


def test_reaping_takes_what_is_dead_and_nothing_else(runtime: Runtime) -> None:
    with runtime.cell() as cell:
        assert runtime.sandbox.reap(lambda labels: labels.get("run") == "another") == 0
        learn(cell)
        assert runtime.sandbox.reap(lambda labels: labels == LABELS) >= 1


# --- what a learner at the other end of a wire may try ----------------------------------------------------------------


def test_a_hang_is_ended_at_the_deadline(wired: Runtime) -> None:
    with wired.cell("learn:sleep", 600) as cell:
        started = time.monotonic()
        with pytest.raises(LearnerError, match="within 1 s") as caught:
            learn(cell, seconds=1)
        assert time.monotonic() - started < 3
        assert caught.value.status is Status.TIMED_OUT
        with pytest.raises(LearnerError) as again:
            cell.call("shutdown", ShutdownParams(), 5)
        assert again.value.status is Status.TIMED_OUT


def test_prints_do_not_disturb_the_protocol(wired: Runtime) -> None:
    with wired.cell("learn:print") as cell:
        learn(cell)
        tail = cell.log_tail()
    assert "straight to descriptor 1" in tail
    assert "from a child" in tail


def test_the_log_is_a_bounded_tail_without_control_characters(wired: Runtime) -> None:
    with wired.cell("learn:print_much", 2000) as cell:
        learn(cell)
        tail = cell.log_tail()
    assert 0 < len(tail) <= LIMITS.log_bytes
    assert "\x1b" not in tail
    assert "\\x1b[31m" in tail


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("wrong_id", "999"),
        ("string_id", "malformed"),
        ("twice", "not waiting"),
        ("both", "either"),
        ("neither", "either"),
        ("extra_field", "score"),
        ("deep", "nested"),
        ("huge_number", "digits"),
        ("nan", "not JSON"),
        ("not_json", "not JSON"),
        ("not_utf8", "not UTF-8"),
        ("array", "not a JSON object"),
        ("no_newline", "exceeds"),
        ("empty_lines", "not JSON"),
        ("notes", "notifications a second"),
        ("unknown_note", "notification"),
        ("request_back", "notification"),
        ("odd_code", "error"),
        ("surrogate", "malformed"),
    ],
)
def test_a_breach_of_the_protocol_ends_the_call_at_once(wired: Runtime, act: str, words: str) -> None:
    with wired.rogue_cell(act) as cell:
        started = time.monotonic()
        with pytest.raises(LearnerError) as caught:
            learn(cell, seconds=20)
        assert time.monotonic() - started < 10
    assert caught.value.status is Status.PROTOCOL_ERROR
    assert words in caught.value.message


def test_a_second_answer_is_found_when_the_output_is_taken(wired: Runtime, tmp_path: Path) -> None:
    with wired.rogue_cell("later_again") as cell:
        learn(cell)
        time.sleep(1)
        with pytest.raises(LearnerError, match="not waiting"):
            cell.collect(tmp_path / "out")


@pytest.mark.parametrize(
    ("act", "words"), [("exit_0", "code 0"), ("half_line", "code 0"), ("kill_self", "before it answered")]
)
def test_an_early_end_is_a_crash(wired: Runtime, act: str, words: str) -> None:
    with wired.rogue_cell(act) as cell, pytest.raises(LearnerError) as caught:
        learn(cell)
    assert caught.value.status is Status.CRASHED
    assert words in caught.value.message


def test_a_learner_that_answers_and_leaves_gives_no_output(wired: Runtime, tmp_path: Path) -> None:
    with wired.rogue_cell("answer_then_exit") as cell:
        learn(cell)
        time.sleep(0.5)
        with pytest.raises(LearnerError) as caught:
            cell.collect(tmp_path / "out")
    assert caught.value.status is Status.CRASHED


def test_last_words_are_in_the_log(wired: Runtime) -> None:
    error = failure(wired, "exit", 3)
    assert "code 3" in error.message
    assert "leaving" in error.log_tail


@pytest.mark.parametrize("act", ["stderr", "ignore_term", "close_stdout", "close_stdin"])
def test_only_the_clock_ends_a_learner_that_lives_on(wired: Runtime, act: str) -> None:
    with wired.rogue_cell(act) as cell:
        started = time.monotonic()
        with pytest.raises(LearnerError) as caught:
            learn(cell, seconds=1.5)
        assert time.monotonic() - started < 4
    assert caught.value.status is Status.TIMED_OUT


def test_a_flood_of_stderr_does_not_bury_the_answer(wired: Runtime) -> None:
    with wired.rogue_cell("stderr_then_answer") as cell:
        assert learn(cell) == {}
        assert len(cell.log_tail()) <= LIMITS.log_bytes


def test_text_of_a_learner_is_cut_and_escaped(wired: Runtime) -> None:
    with wired.rogue_cell("odd_text") as cell, pytest.raises(LearnerError) as caught:
        learn(cell)
    assert caught.value.message.isprintable()
    assert "\\x1b[31m" in caught.value.message
    assert len(caught.value.message) < 700


def test_memory_over_the_limit_is_out_of_memory(wired: Runtime) -> None:
    error = failure(wired, "allocate", 400 << 20)
    assert error.status is Status.OUT_OF_MEMORY
    assert "256 MiB" in error.message


def test_children_do_not_outlive_their_cell(wired: Runtime) -> None:
    import psutil

    with wired.cell("learn:spawn", 4321) as cell:
        learn(cell)
    time.sleep(0.3)
    left = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "4321"]]
    assert left == []


def test_two_cells_write_the_same_state(wired: Runtime, tmp_path: Path) -> None:
    arrays = []
    for attempt in ("a", "b"):
        with wired.cell() as cell:
            learn(cell)
            cell.collect(tmp_path / attempt)
        arrays.append({f.name: f.read_bytes() for f in (tmp_path / attempt).iterdir()})
    assert arrays[0] == arrays[1]
