"""The GPU's engine around the CPU's kernel: addresses, copies, events, weights and ends, without a GPU."""

import numpy as np
import pytest
from engine_runs import TARGETS, a_game, config, engine, finish, wait_for
from fake_cuda import fake_cubin, fake_gpu

from ofa_tui import abi
from ofa_tui.engine import cuda, cuda_maps
from ofa_tui.engine.cuda import CudaEngine
from ofa_tui.engine.cuda_compiler import VARIANTS, Cubin
from ofa_tui.engine.cuda_copy import pieces
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs

FOREVER = 100_000


def cuda_engine(kernel, run, target="host", **options):
    programs = compile_programs(run.model, run.train, games=run.games, streams=run.streams, target=target,
                                storage="f4")
    gpu, driver = fake_gpu(kernel, **options)
    return CudaEngine(programs, run, fake_cubin(target), gpu), driver


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_is_that_of_the_host_engine(kernel, target):
    """Losses, sweeps, tokens and weights bit for bit; nothing in the image points to the host's arrays."""
    run = config(sms=(2, 1, 0), tokens_per_s=0)
    on_host = engine(kernel, run, target)
    expected = [loss.loss for s in finish(on_host) for loss in s.losses]
    running, driver = cuda_engine(kernel, run, target)
    running.start()
    snapshots = wait_for(running, lambda s: s.state == "finished" and s.tokens_served >= 3)
    running.stop()
    snapshots.append(running.poll())
    assert [loss.loss for s in snapshots for loss in s.losses] == expected
    served = [token for s in snapshots for token in s.served]
    assert [token.index for token in served] == list(range(len(served))) and len(served) >= 3
    assert len([sweep for s in snapshots for sweep in s.sweeps]) == 3
    for name, weights in on_host.weights().items():
        assert np.array_equal(running.weights()[name], weights), name
    state, expected_state = running.train_state(), on_host.train_state()
    assert all(np.array_equal(state.m[name], expected_state.m[name]) for name in state.m)
    assert len(driver.launched) == 1 and driver.launched[0][0] == (3, 1) and driver.depth == 0
    running.close()
    assert driver.freed == 2


def test_the_timeline_is_copied_as_it_grows(kernel):
    """Every task of every SM once, though the ring is read many times over."""
    run = config(steps=60, sms=(2, 1, 0), tokens_per_s=200, timeline_entries=4096)
    running, _ = cuda_engine(kernel, run)
    running.start()
    snapshots = wait_for(running, lambda s: s.state == "finished")
    running.stop()
    parts = [s.timeline for s in [*snapshots, running.poll()]]
    counts = np.bincount(np.concatenate([part.sms for part in parts]), minlength=3)
    lost = sum(part.lost for part in parts)
    assert (counts + lost).tolist() == running.poll().sms["tasks_done"].tolist()
    assert not lost.any() and len([part for part in parts if len(part.sms)]) > 3


def test_events_prompts_and_pauses_reach_the_kernel(kernel):
    running, _ = cuda_engine(kernel, config(steps=FOREVER, sms=(2, 1, 0), tokens_per_s=0))
    running.start()
    wait_for(running, lambda s: s.steps_done >= 2)
    for _ in range(3):
        running.post(Event("prompt", "token", text="abc"))
    running.post(Event("set_role", "step", 0, 1, (abi.SERVE,)))
    snapshots = wait_for(running, lambda s: s.roles.tolist() == [abi.TRAIN, abi.SERVE, abi.SERVE])
    served = snapshots[-1].tokens_served
    snapshots += wait_for(running, lambda s: s.tokens_served > served + 20)
    running.pause(True)
    wait_for(running, lambda s: s.state == "paused")
    running.pause(False)
    running.stop()
    snapshots.append(running.poll())
    applied = [a.event.action for s in snapshots for a in s.applied]
    assert applied.count("set_role") == 1 and applied.count("prompt") == 3
    prompted = [token.token for s in snapshots for token in s.served if token.from_prompt]
    assert prompted[:1] == [ord("a")] and prompted[-3:] == [*b"abc"]
    assert snapshots[-1].state == "stopped" and snapshots[-1].version == snapshots[-1].steps_done


def test_frames_and_commands_of_every_game_are_those_of_the_host(kernel):
    """Every frame that is seen is the one the host engine shows; a poll fetches what is new, not the rings."""
    game = a_game(games=2)
    if game is None:
        pytest.skip("the vizdoom package, whose wheel ships Freedoom, is not installed")
    run = config(steps=FOREVER, sms=(1, 0, 1), doom=game, tics_per_s=0)
    frames: list[dict[tuple[int, int], np.ndarray]] = []
    commands: list[np.ndarray] = []
    for running in (cuda_engine(kernel, run)[0], engine(kernel, run)):
        running.start()
        snapshots = wait_for(running, lambda s: any(f.number > 3 * abi.FRAME_SLOTS for f in s.others))
        running.stop()
        snapshots.append(running.poll())
        frames.append({(f.game, f.number): f.pixels for s in snapshots for f in [*s.frames, *s.others]})
        for played in zip(*(s.commands for s in snapshots), strict=True):
            news = [c for c in played if len(c.rows)]
            assert [int(c.first) for c in news] == np.cumsum([0, *(len(c.rows) for c in news)])[:-1].tolist()
            commands.append(np.concatenate([c.rows for c in news])[: 3 * abi.FRAME_SLOTS])
    both = sorted(set(frames[0]) & set(frames[1]))
    # Of the other game a poll shows the newest picture alone, and not that of one tic on both engines.
    assert all({game for game, _ in seen} == {0, 1} for seen in frames) and len(both) > 20
    assert all(np.array_equal(frames[0][n], frames[1][n]) for n in both)
    assert all(np.array_equal(commands[game], commands[2 + game]) for game in range(2))


def test_a_kernel_that_was_ended_from_outside_is_reported(kernel):
    running, driver = cuda_engine(kernel, config(steps=FOREVER, sms=(2, 1, 0)))
    running.start()
    wait_for(running, lambda s: s.steps_done >= 1)
    image = running.memory.arena
    driver.lost = True
    last = running.poll()
    assert last.state == "aborted" and "illegal memory access" in last.message
    assert sum(line.startswith("SM ") for line in last.message.splitlines()) == 3
    running.stop()
    with pytest.raises(OfaError, match="the weights are lost"):
        running.weights()
    driver.lost = False  # the pretended kernel still runs: end it behind the engine's back
    control = running._base + image.offset("control")
    driver.depth = 1
    driver.memcpy_htod(control, np.ones(3, np.uint32))


def test_a_task_that_never_signals_is_reported(kernel):
    run = config(sms=(2, 1, 0), deadline_s=0.3)
    programs = compile_programs(run.model, run.train, games=0, storage="f4")
    train = programs.programs["train"]
    broken = next(i for i, label in enumerate(train.labels) if "layers.1.qkv" in label)
    train.tasks["signal"][broken] = abi.NONE_U32
    running = CudaEngine(programs, run, fake_cubin("host"), fake_gpu(kernel)[0])
    running.start()
    last = wait_for(running, lambda s: s.state == "aborted")[-1]
    assert "deadline" in last.message
    running.stop()
    assert not running.running


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"sms": (60, 6, 0)}, "has 64 SMs and 66 were asked for"), ({"layers": 3}, "needs .* GB of memory and 0.0 GB")],
)
def test_what_does_not_fit_is_refused(kernel, changes, sentence):
    with pytest.raises(OfaError, match=sentence):
        cuda_engine(kernel, config(**changes), memory_bytes=100_000 if "layers" in changes else 1 << 34)


def test_only_the_hopper_kernel_is_given_tensor_maps(kernel, monkeypatch):
    """Which the driver makes: those of older GPUs refuse."""
    run = config()
    programs = compile_programs(run.model, run.train, games=0, target="sm90")
    filled = []
    monkeypatch.setattr(cuda, "DriverLibrary", lambda: None)
    monkeypatch.setattr(cuda_maps, "fill", lambda maps, *_: filled.append(len(maps)))
    for name in ("sm80", "sm90"):
        CudaEngine(programs, run, Cubin(b"", "", VARIANTS[name], "90a"), fake_gpu(kernel)[0]).close()
    assert len(filled) == 1 and filled[0] > 0


def test_programs_of_another_target_are_refused(kernel):
    run = config()
    programs = compile_programs(run.model, run.train, games=0, target="sm90", storage="f4")
    with pytest.raises(OfaError, match="runs programs for host, not for sm90"):
        CudaEngine(programs, run, fake_cubin("host"), fake_gpu(kernel)[0])


@pytest.mark.parametrize(
    ("first", "end", "length", "ring", "expected"),
    [
        (3, 5, 10, False, [(3, 2)]), (5, 5, 10, False, []),
        (3, 5, 4, True, [(3, 1), (0, 1)]), (8, 10, 4, True, [(0, 2)]), (0, 100, 4, True, [(0, 4)]),
        (0, 99, 4, True, [(3, 1), (0, 3)]), (7, 7, 4, True, []),
    ],
)
def test_pieces_cover_what_is_new(first, end, length, ring, expected):
    assert pieces(first, end, length, ring) == expected
