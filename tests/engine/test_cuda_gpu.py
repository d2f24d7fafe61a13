"""The portable kernel on a real GPU, small runs; scripts/gpu_suite.py does the long ones."""

import numpy as np
import pytest
from engine_runs import a_game, config, engine, finish, wait_for

from ofa_tui import abi
from ofa_tui.engine import cuda_doctor
from ofa_tui.engine.cuda import CudaEngine, open_engine
from ofa_tui.engine.cuda_compiler import VARIANTS, Cubin, cubin_for
from ofa_tui.engine.cuda_library import DriverLibrary
from ofa_tui.engine.protocol import Event
from ofa_tui.program.lowering import compile_programs

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.timeout(1800),
              pytest.mark.skipif(bool(cuda_doctor.missing()), reason="no GPU can be used here")]
FOREVER = 100_000


@pytest.fixture(scope="module")
def cubin() -> Cubin:
    return cubin_for(VARIANTS["portable"], DriverLibrary().gpus()[0].architecture)


def on_gpu(cubin, run, change=lambda programs: None) -> CudaEngine:
    programs = compile_programs(run.model, run.train, games=run.games)
    change(programs)
    return open_engine(programs, run, cubin)


def losses_of(running) -> np.ndarray:
    return np.array([loss.loss for s in finish(running) for loss in s.losses], np.float32)


def test_losses_are_the_cpus_and_the_same_bits_on_any_number_of_sms(kernel, cubin):
    expected = losses_of(engine(kernel, config()))
    found = []
    for sms, events in (((2, 1, 0), ()), ((20, 4, 0), ()),
                        ((9, 2, 0), (Event("set_role", "step", 2, 3, (abi.SERVE,)),))):
        running = on_gpu(cubin, config(sms=sms, events=events))
        found.append(losses_of(running))
        running.close()
    assert np.abs(found[0] - expected).max() < 1e-4
    assert all(losses.tobytes() == found[0].tobytes() for losses in found)


def test_frames_are_the_cpus(kernel, cubin):
    game = a_game(games=1)
    if game is None:
        pytest.skip("the vizdoom package, whose wheel ships Freedoom, is not installed")
    run = config(steps=FOREVER, sms=(1, 0, 1), doom=game, tics_per_s=0)
    frames = []
    for running in (on_gpu(cubin, run), engine(kernel, run)):
        running.start()
        snapshots = wait_for(running, lambda s: bool(s.frames) and s.frames[-1].number > 300)
        running.stop()
        frames.append({frame.number: frame.pixels for s in snapshots for frame in s.frames})
    both = sorted(set(frames[0]) & set(frames[1]))
    assert len(both) > 50 and all(np.array_equal(frames[0][n], frames[1][n]) for n in both)


def test_a_task_that_never_signals_is_reported_and_the_gpu_goes_on(cubin):
    def silence(programs):
        train = programs.programs["train"]
        broken = next(i for i, label in enumerate(train.labels) if "layers.1.qkv" in label)
        train.tasks["signal"][broken] = abi.NONE_U32

    running = on_gpu(cubin, config(sms=(2, 1, 0), deadline_s=1), silence)
    running.start()
    last = wait_for(running, lambda s: s.state == "aborted")[-1]
    assert "deadline" in last.message and sum(line.startswith("SM ") for line in last.message.splitlines()) == 3
    running.stop()
    running.close()
    assert len(losses_of(on_gpu(cubin, config()))) == 6
