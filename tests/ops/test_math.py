"""platform/math.h against float64 over the whole of its domain."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ofa_tui import locations
from ofa_tui.engine.compiler import find_compiler


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    output = str(tmp_path_factory.mktemp("math") / "math.so")
    source = str(Path(__file__).with_name("math_accuracy.cc"))
    flags = ["-std=c++20", "-O2", "-march=native", "-shared", "-fPIC", f"-I{locations.cuda_sources()}"]
    subprocess.run([*find_compiler().command, *flags, source, "-o", output], check=True)
    return ctypes.CDLL(output)


def apply(function, x):
    x = np.ascontiguousarray(x, np.float32)
    y = np.zeros_like(x)
    function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_int(len(x)))
    return y


def gelu(u):
    return 0.5 * u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3)))


def test_exp(functions):
    x = np.concatenate([np.linspace(-87.3, 87, 400_001), np.geomspace(1e-30, 1, 1000)]).astype(np.float32)
    expected = np.exp(x.astype(float))
    assert np.abs(apply(functions.exp_of, x) / expected - 1).max() < 1.5e-7
    limits = apply(functions.exp_of, [-1e30, -88, 88, 1e30])
    smallest, largest = np.exp(np.float32(-87.3)), np.exp(np.float32(87))
    assert np.allclose(limits, [smallest, smallest, largest, largest], rtol=1e-6)
    assert np.all(1 / limits > np.finfo(np.float32).tiny)
    assert np.isnan(apply(functions.exp_of, [np.nan, np.inf, -np.inf, -np.nan])).all()


def test_log(functions):
    x = np.concatenate([np.geomspace(1.2e-38, 3e38, 400_001), np.linspace(0.5, 2, 400_001)]).astype(np.float32)
    expected = np.log(x.astype(float))
    assert (np.abs(apply(functions.log_of, x) - expected) / (1 + np.abs(expected))).max() < 1e-7
    assert np.isnan(apply(functions.log_of, [np.nan, np.inf])).all()


def test_gelu_and_its_derivative(functions):
    x = np.linspace(-12, 12, 200_001).astype(np.float32)
    u, h = x.astype(float), 1e-5
    assert (np.abs(apply(functions.gelu_of, x) - gelu(u)) / np.maximum(1, np.abs(u))).max() < 2e-7
    slope = (gelu(u + h) - gelu(u - h)) / (2 * h)
    assert np.abs(apply(functions.gelu_derivative_of, x) - slope).max() < 1e-6
    far = apply(functions.gelu_of, [-1e10, -100, 100, np.nan])
    assert np.abs(far[:2]).max() < 1e-7 and far[2] == 100 and np.isnan(far[3])


def test_sine_and_cosine(functions):
    turns = np.concatenate([np.linspace(-3, 3, 100_001), np.random.default_rng(0).uniform(-1e6, 1e6, 100_000)])
    sine, cosine = np.zeros(len(turns), np.float32), np.zeros(len(turns), np.float32)
    functions.sine_cosine_of(*(ctypes.c_void_p(a.ctypes.data) for a in (turns, sine, cosine)), ctypes.c_int(len(turns)))
    angle = 2 * np.pi * (turns - np.round(turns))
    assert np.abs(sine - np.sin(angle)).max() < 2e-7
    assert np.abs(cosine - np.cos(angle)).max() < 2e-7
