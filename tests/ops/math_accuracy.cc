// The functions of platform/math.h on whole arrays, for test_math.py.
#include "platform/math.h"

using namespace ofa;

extern "C" {

void exp_of(const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = math::exp(x[i]);
}

void log_of(const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = math::log(x[i]);
}

void gelu_of(const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = math::gelu(x[i]);
}

void gelu_derivative_of(const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = math::gelu_derivative(x[i]);
}

void sine_cosine_of(const double* turns, float* sine, float* cosine, int n) {
    for (int i = 0; i < n; ++i) {
        const math::SineCosine result = math::sine_cosine_of_turns(turns[i]);
        sine[i] = result.sine;
        cosine[i] = result.cosine;
    }
}
}
