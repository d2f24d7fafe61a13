import pytest
from engine_runs import TARGETS, config, engine, finish, sweeps, text_tokens

from ofa_tui.engine.library import KernelLibrary, load_kernel


@pytest.fixture(scope="session")
def kernel() -> KernelLibrary:
    """The kernel's CPU build; all tests that need it share the one in the cache."""
    return load_kernel()


@pytest.fixture(scope="module", params=TARGETS)
def whole(kernel, request):
    """Nine steps, a little more than three epochs, with sweeps between them: engine, sweeps, target."""
    running = engine(kernel, config(steps=9, train_tokens=text_tokens(200)), request.param)
    return running, sweeps(finish(running)), request.param
