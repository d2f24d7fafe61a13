"""The kernel as a program of its own under the sanitizers: no data race, no bad access, no undefined behaviour."""

import subprocess

import pytest
from engine_runs import a_game, config, engine, finish

from ofa_tui import abi
from ofa_tui.engine import compiler
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import sampling_event
from ofa_tui.errors import OfaError

PAST = 2**32


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("sanitizer", compiler.SANITIZERS)
def test_a_whole_run_is_clean(kernel, tmp_path, sanitizer):
    """Steps, tokens and tics pass 2^32 on the way, and the state is read again and again while roles are held."""
    doom = a_game(games=2)
    step, token, tic = PAST - 3, PAST - 5, PAST - 2
    events = (
        Event("set_role", "step", step + 1, 3, (abi.TRAIN,)),
        Event("set_role", "step", step + 3, 0, (abi.SERVE,)),
        sampling_event(0.9, 0.8, 20, 5, when=token + 3),
        Event("prompt", "token", token + 5, text="abc"),
        Event("automap", "tic", tic + 2, 1, (1, 3, 0, 0)),
        Event("rewind", "tic", tic + 4, 0, (1,)),
        Event("rewind", "tic", tic + 5, 0, (-1,)),
    )
    begin = {"steps": step + 6, "first_step": step, "first_token": token, "first_story": PAST - 1, "first_tic": tic}
    run = config(sms=(3, 2, 2), doom=doom, events=events, jitter_seed=4, deadline_s=300, tics_per_s=0, **begin)
    program = compiler.build(sanitizer=sanitizer)
    image = tmp_path / "image"
    engine(kernel, run).memory.arena.save_image(image, "launch")
    done = subprocess.run([program, image], capture_output=True, text=True, timeout=900)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this system's address layout is not one that the thread sanitizer supports")
    report = (done.stderr + done.stdout)[-6000:]
    assert done.returncode == 0 and not done.stderr, report
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"steps {step + 6} ") and lines[0].endswith("abort 0"), report
    assert int(lines[0].split()[3]) > PAST, report
    assert int(lines[0].split()[7]) > 2, "the state was read while the kernel ran"
    losses = [float(line.split()[1]) for line in lines[1:]]
    normal = engine(kernel, config(**begin))
    finish(normal)
    assert losses == pytest.approx(normal.memory["losses"].tolist(), rel=1e-5)


def test_an_unknown_sanitizer_is_refused():
    with pytest.raises(OfaError, match="thread, address, undefined"):
        compiler.build(sanitizer="memory")
