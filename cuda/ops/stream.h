// One token through the model by owned tasks that pass on messages.
#pragma once

#include "task.h"

namespace ofa {

OFA_OP void op_stream_begin(Block&, const TaskContext&) {}
OFA_OP void op_stream_qkv(Block&, const TaskContext&) {}
OFA_OP void op_stream_attention(Block&, const TaskContext&) {}
OFA_OP void op_stream_matmul_residual(Block&, const TaskContext&) {}
OFA_OP void op_stream_norm_matmul_gelu(Block&, const TaskContext&) {}
OFA_OP void op_stream_norm_matmul(Block&, const TaskContext&) {}

}  // namespace ofa
