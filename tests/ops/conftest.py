import pytest

from ofa_tui.engine.library import KernelLibrary, load_kernel


@pytest.fixture(scope="session")
def kernel() -> KernelLibrary:
    """The kernel's CPU build; all tests that need it share the one in the cache."""
    return load_kernel()
