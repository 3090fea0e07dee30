"""The supervisor's parts by themselves: lock, restarts, logs, stopping in order, leftovers."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.cli.supervisor import leftovers, parts, services
from forecurve.cli.supervisor.console import UpConsole
from forecurve.cli.supervisor.files import read_json, write_json
from forecurve.cli.supervisor.identity import start_ticks
from forecurve.cli.supervisor.layout import TAG, Layout
from forecurve.cli.supervisor.lock import DataDirLock, Held, is_held
from forecurve.cli.supervisor.options import CannotStart
from forecurve.cli.supervisor.parts import ProcessPart
from forecurve.cli.supervisor.ray import RayPart
from forecurve.cli.supervisor.restarts import RestartPolicy
from forecurve.cli.supervisor.state import UpState
from forecurve.cli.supervisor.supervisor import StopRequested, Supervisor
from tests.worker.fake_ray import TOKEN, FakeRay

from .conftest import Forecurve
from .services import wait_until

pytestmark = pytest.mark.usefixtures("own_short_paths")

HOLD = """
import sys, time
from pathlib import Path
from forecurve.cli.supervisor.lock import DataDirLock
lock = DataDirLock(Path(sys.argv[1])); lock.acquire({"url": "http://there"}); print("held", flush=True); time.sleep(60)
"""


def test_a_lock_is_refused_while_its_holder_lives_and_free_once_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(Held) as caught:
        DataDirLock(path).acquire({}, patience_s=0)
    began = start_ticks(holder.pid)
    assert caught.value.holder == {"pid": holder.pid, "start_ticks": began, "url": "http://there"}
    assert is_held(path)

    holder.kill()
    holder.wait()
    assert not is_held(path)
    lock = DataDirLock(path)
    lock.acquire({}, patience_s=0)
    lock.release()
    assert not is_held(path)


@given(st.lists(st.floats(0.0, 600.0), min_size=1, max_size=40))
def test_restarts_wait_longer_while_crashes_are_close_and_are_given_up_only_when_too_many_are(
    gaps: list[float],
) -> None:
    policy, now, crashes = RestartPolicy(), 0.0, []
    for gap in gaps:
        now += gap
        crashes.append(now)
        recent = [crash for crash in crashes if crash >= now - policy.window_s]
        pause = policy.crashed(now)
        if len(recent) > policy.max_crashes:
            assert pause is None
        else:
            assert pause == min(policy.most_s, policy.first_s * 2 ** (len(recent) - 1))


def test_a_part_that_does_not_stay_up_is_given_up_with_the_end_of_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout.of(tmp_path)
    layout.make()
    state = UpState("http://x", "http://x", str(tmp_path), False)
    hasty = lambda: RestartPolicy(first_s=0.01, max_crashes=2)  # noqa: E731
    supervisor = Supervisor(layout, state, UpConsole(as_json=True), policies=hasty)
    script = "import sys; print('no such table', file=sys.stderr); sys.exit(3)"
    log = layout.logs / "bad.log"
    supervisor.launch(
        ProcessPart("bad", [sys.executable, "-S", "-c", script], env=dict(os.environ), cwd=tmp_path, log=log)
    )

    with pytest.raises(StopRequested):
        _tend(supervisor, 30)
    supervisor.stop_all()

    said = capsys.readouterr().out
    assert said.count('"crashed"') == 2
    assert '"gave-up"' in said
    assert "no such table" in said
    assert supervisor.failed
    assert read_json(layout.state)["parts"]["bad"]["restarts"] == 2


def test_a_full_disk_keeps_nobody_from_tending_and_stopping_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the state nor a log nor what reads our output takes a word any more."""
    layout = Layout.of(tmp_path)
    layout.make()
    state = UpState("http://x", "http://x", str(tmp_path), False)
    hasty = lambda: RestartPolicy(first_s=0.01)  # noqa: E731
    supervisor = Supervisor(layout, state, UpConsole(as_json=True), policies=hasty)
    monkeypatch.setattr(parts, "open_log", lambda _: Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115
    monkeypatch.setattr("builtins.print", refused)
    with monkeypatch.context() as disk:
        disk.setattr(UpState, "write", refused)
        tended = killed_and_started_again(supervisor, state, tmp_path)
    supervisor.tend()
    assert read_json(layout.state)["parts"]["part"]["pid"] == tended, "written when there is room again"
    monkeypatch.setattr(UpState, "write", refused)
    supervisor.stop_all()
    assert not psutil.pid_exists(tended)


def killed_and_started_again(supervisor: Supervisor, state: UpState, tmp_path: Path) -> int:
    sleeps = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    supervisor.launch(ProcessPart("part", sleeps, env=dict(os.environ), cwd=tmp_path, log=tmp_path / "part.log"))
    before = state.parts["part"].pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    _tend(supervisor, 2)
    after = state.parts["part"].pid
    assert after not in (None, before)
    return int(after or 0)


def test_a_file_that_could_not_be_written_is_left_as_it_was_with_nothing_beside_it(tmp_path: Path) -> None:
    write_json(tmp_path / "state.json", {"kept": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_json(tmp_path / "state.json", {"new": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_json(tmp_path / "state.json") == {"kept": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def refused(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_logs_are_for_their_owner_only_also_those_of_before(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    (tmp_path / "logs").mkdir(mode=0o755)
    log = layout.logs / "part.log"
    log.touch(mode=0o644)
    layout.make()
    services.run_once("this", dict(os.environ), tmp_path, layout.logs / "once.log", lambda _: None)
    part = ProcessPart("part", [sys.executable, "-S", "-c", ""], env=dict(os.environ), cwd=tmp_path, log=log)
    part.start()
    part.stop(5.0)
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in layout.logs.iterdir()} == {
        "part.log": "0o600",
        "once.log": "0o600",
    }
    assert [folder.stat().st_mode & 0o777 for folder in (layout.logs, layout.redis)] == [0o700, 0o700]


def test_what_fails_at_the_start_is_said_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text("raise SystemExit('FORECURVE_TICK_S is 0: must be more than 0')")
    (tmp_path / "silent.py").write_text("raise SystemExit(3)")
    long = "OSError('refused\\n\\tIs it running?\\n(Background on this error at ...)')"
    (tmp_path / "long.py").write_text(f"raise {long}")
    words = {
        "faulty": "FORECURVE_TICK_S is 0: must be more than 0",
        "silent": "exit code 3",
        "long": "OSError: refused",
    }
    for module, said in words.items():
        with pytest.raises(CannotStart, match=rf"`python -m {module}` failed: {said}; see .*{module}\.log"):
            services.run_once(module, dict(os.environ), tmp_path, tmp_path / f"{module}.log", lambda _: None)
    (tmp_path / "mistaken.py").write_text("raise SystemExit(2)")
    with pytest.raises(CannotStart) as failed:
        services.run_once("mistaken", dict(os.environ), tmp_path, tmp_path / "mistaken.log", lambda _: None)
    assert failed.value.exit_code == 2


def test_a_bootstrap_that_hangs_is_ended_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = tmp_path / "server" / "access"
    access.mkdir(parents=True)
    for package in (access.parent, access):
        (package / "__init__.py").touch()
    (access / "bootstrap.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(services, "BOOTSTRAP_S", 0.3)
    with pytest.raises(CannotStart, match=r"does the database answer\? See .*bootstrap\.log"):
        services.bootstrap(dict(os.environ), tmp_path, tmp_path / "bootstrap.log")


class Recorded:
    """A part that only says when it was stopped."""

    note, pid = "", None

    def __init__(self, name: str, stopped: list[str]):
        self.name, self.log, self._stopped = name, Path(name), stopped

    def start(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    def is_alive(self) -> bool:
        return True

    def keep_log_short(self) -> None:
        pass

    def stop(self, grace_s: float) -> None:
        self._stopped.append(self.name)


def test_trainers_end_while_the_api_is_there_to_take_their_reports_and_nobody_to_start_others(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    layout.make()
    supervisor = Supervisor(layout, UpState("http://x", "http://x", str(tmp_path), True), UpConsole(as_json=True))
    stopped: list[str] = []
    for name in ("ray", "postgres", "redis", "api", "worker", "scheduler"):
        supervisor.launch(Recorded(name, stopped))

    supervisor.stop_all()

    assert stopped == ["scheduler", "worker", "ray", "api", "redis", "postgres"]


def test_ray_ends_when_its_jobs_have_ended(tmp_path: Path) -> None:
    ray = FakeRay()
    for number in (1, 2):
        ray.submit({"submission_id": f"run-a{number}", "entrypoint": "train"})
    ray.set("run-a1", "SUCCEEDED")
    ray.set("run-a2", "RUNNING", driver_info={"node_ip_address": "192.0.2.7", "pid": "1"})  # elsewhere: Ray ends it
    argv = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    part = RayPart(ray.url, TOKEN, argv, env=dict(os.environ), cwd=tmp_path, log=tmp_path / "log")
    alive_when_the_job_ended: list[bool] = []

    def end_slowly(reference: str) -> tuple[int, str]:
        def end() -> None:
            alive_when_the_job_ended.append(part.is_alive())
            ray.set(reference, "STOPPED")

        ray.stops.append(reference)
        threading.Timer(0.5, end).start()
        return 200, "{}"

    ray.end = end_slowly  # type: ignore[method-assign]
    part.start()
    part.stop(5.0)
    ray.stop()

    assert ray.stops == ["run-a2"]
    assert alive_when_the_job_ended == [True]
    assert not part.is_alive()


def test_a_ray_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    argv = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    part = RayPart("http://127.0.0.1:9", "t", argv, env=dict(os.environ), cwd=tmp_path, log=tmp_path / "log")
    part.start()
    began = time.monotonic()
    part.stop(5.0)
    assert time.monotonic() - began < 5.0


def test_leftovers_are_found_by_mark_by_descent_and_by_the_last_state(tmp_path: Path) -> None:
    key = "k" + os.urandom(4).hex()
    child = "import subprocess, sys, time, os; e = dict(os.environ); e.pop('FORECURVE_UP', None); "
    child += "p = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'], env=e); "
    child += "print(p.pid, flush=True); time.sleep(60)"
    marked = subprocess.Popen(
        [sys.executable, "-S", "-c", child], env=os.environ | {TAG: key}, stdout=subprocess.PIPE, text=True
    )
    recorded = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    assert marked.stdout is not None
    grandchild = int(marked.stdout.readline())
    entry = {"name": "redis", "pid": recorded.pid, "start_ticks": start_ticks(recorded.pid)}
    someone_else = {"name": "api", "pid": os.getppid(), "start_ticks": 1}  # the pid was given to another process

    found = leftovers.find(key, {"parts": {"redis": entry, "api": someone_else}})

    assert {process.pid for process in found} == {marked.pid, grandchild, recorded.pid}
    leftovers.end(found)
    assert leftovers.find(key) == []
    assert not psutil.pid_exists(grandchild) or psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE
    marked.wait()
    recorded.wait()


def test_a_part_that_ignores_sigterm_is_killed_with_its_family_after_the_grace(tmp_path: Path) -> None:
    stubborn = "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    stubborn += (
        "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'], start_new_session=True); "
    )
    stubborn += "print('up', flush=True); time.sleep(60)"
    part = ProcessPart(
        "stubborn",
        [sys.executable, "-S", "-c", stubborn],
        env=dict(os.environ),
        cwd=tmp_path,
        log=tmp_path / "log",
        ready=lambda part: part.has_said("up\n"),
        deep=True,
    )
    part.start()
    wait_until(part.is_ready)
    assert part.pid is not None
    family = [psutil.Process(part.pid), *psutil.Process(part.pid).children(recursive=True)]

    part.stop(0.2)

    assert len(family) == 2
    assert [process.pid for process in family if leftovers.is_alive(process)] == []


def test_a_log_that_grows_too_long_begins_anew_while_its_part_writes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LOG_BYTES", 10)
    echo = "import sys; [print(line, end='', flush=True) for line in sys.stdin]"
    reads, writes = os.pipe()
    part = ProcessPart(
        "echo",
        [sys.executable, "-S", "-c", f"import os, sys; sys.stdin = os.fdopen({reads}); {echo}"],
        env=dict(os.environ),
        cwd=tmp_path,
        log=tmp_path / "echo.log",
        inherits=(reads,),
    )
    part.start()
    os.close(reads)
    os.write(writes, b"before\n")
    wait_until(lambda: part.has_said("before\n"))

    part.keep_log_short()
    os.write(writes, b"after\n")
    os.close(writes)

    wait_until(lambda: not part.is_alive())
    assert part.log.read_text() == "after\n"
    assert (tmp_path / "echo.log.1").read_text().endswith("start\nbefore\n")
    assert (tmp_path / "echo.log.1").stat().st_mode & 0o777 == 0o600
    part.stop(0.1)


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_data_directory_that_is_none_is_bad_input(tmp_path: Path, forecurve: Forecurve, command: str) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (file, Path("/proc/nope")) if command == "up" else (file,):
        forecurve(command, "--data-dir", folder).check_is_bad_input([f"--data-dir: {folder} cannot be"])


def test_an_up_without_a_ray_that_could_be_started_says_how_to_do_without(
    tmp_path: Path, forecurve: Forecurve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    told = forecurve("up", "--data-dir", tmp_path / "d", "--port", "0")
    assert told.code == 1
    assert "forecurve: there is no command `ray`: pip install 'forecurve[all]', or start --without-ray\n" in told.err
    assert "Stopping" not in told.err


def test_an_up_whose_ray_has_blanks_in_its_path_starts_nothing(
    tmp_path: Path, forecurve: Forecurve, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = tmp_path / "my project" / "ray"
    ray.parent.mkdir()
    ray.touch()
    monkeypatch.setattr(sys, "executable", str(ray.with_name("python")))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    told = forecurve("up", "--data-dir", tmp_path / "d", "--port", "0")
    assert told.code == 1
    assert f"forecurve: Ray does not start from a path with blanks, and it is at {ray}; install into" in told.err
    assert "Stopping" not in told.err


def test_a_stop_while_starting_ends_cleanly(tmp_path: Path) -> None:
    from .services import UpProcess, processes_of

    service = UpProcess(tmp_path / "d", "--without-ray")
    service.wait_for("ready", part="postgres")
    code = service.stop(signal.SIGINT)

    assert code == 0
    assert processes_of(tmp_path / "d") == []


def _tend(supervisor: Supervisor, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        supervisor.tend()
        time.sleep(0.01)
