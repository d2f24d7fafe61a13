import pytest

from ofa_tui.engine.library import KernelLibrary, load_kernel


@pytest.fixture(scope="session")
def kernel() -> KernelLibrary:
    """The kernel's CPU build, from the cache."""
    return load_kernel()
