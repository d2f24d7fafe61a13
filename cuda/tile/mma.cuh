// Matrix instructions of a warp, m16n8k16 in bf16 with f4 sums, and the loads that feed them from shared memory.
//
//   sums      lane l has rows l / 4 (+ 8) and columns 2 (l mod 4) + {0, 1}: at[2 (row half) + {0, 1}]
//   left      16 x 16: words (row l / 4, columns 2 (l mod 4)), (row + 8), (columns + 8), (both)
//   right     16 x 8, a column per lane quarter: words (k = 2 (l mod 4) + {0, 1}, column l / 4), (k + 8)
//
// Matrices of 64 columns of bf16 lie in shared memory as lines of 128 bytes, the 16-byte pieces of a line exchanged by the
// number of the line modulo 8, so that eight lines are read without conflicts.
#pragma once

#include "tile/bf16.cuh"
#include "tile/shared.cuh"

namespace ofa::sm90 {

constexpr int LINE_BYTES = 128;

struct Sums {
    float at[4];
};
struct Left {
    uint32_t at[4];
};
struct Right {
    uint32_t at[2];
};
// Right operands of two neighbouring tiles of 8 columns.
struct RightPair {
    Right at[2];
};

OFA_INLINE void multiply_add(float& s0, float& s1, float& s2, float& s3, const Left& a, const Right& b) {
    asm(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
        : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b.at[0]), "r"(b.at[1]));
}
OFA_INLINE void multiply_add(Sums& sums, const Left& a, const Right& b) {
    multiply_add(sums.at[0], sums.at[1], sums.at[2], sums.at[3], a, b);
}

// A 16 x 16 tile of sums as the left operand of the next product.
OFA_INLINE Left left_of(const Sums& low, const Sums& high) {
    return {{pack(low.at[0], low.at[1]), pack(low.at[2], low.at[3]), pack(high.at[0], high.at[1]),
             pack(high.at[2], high.at[3])}};
}

OFA_INLINE uint32_t piece_at(uint32_t lines, int line, int piece) {
    return lines + line * LINE_BYTES + ((piece ^ (line % 8)) << 4);
}

// Four matrices of 8 x 8, lane l with the place of line l mod 8 of matrix l / 8. Of each a lane gets the two elements of
// row l / 4 from column 2 (l mod 4) on; transposed, of column l / 4 from row 2 (l mod 4) on.
template <bool TRANSPOSED>
OFA_INLINE uint4 load_matrices(uint32_t place) {
    uint4 words;
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(place)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(place)
                     : "memory");
    return words;
}

OFA_INLINE RightPair right_pair(uint4 words) { return {{{{words.x, words.y}}, {{words.z, words.w}}}}; }

// Lines are columns of the right operand (its transpose is stored): columns line .. line + 15, k from 16 step on.
OFA_INLINE RightPair right_of_lines(uint32_t lines, int line, int step) {
    const int lane = int(threadIdx.x) % 32;
    return right_pair(load_matrices<false>(piece_at(lines, line + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2)));
}

// Lines are rows of the right operand: k = line .. line + 15, columns from 16 pair on.
OFA_INLINE RightPair right_of_columns(uint32_t lines, int line, int pair) {
    const int lane = int(threadIdx.x) % 32;
    return right_pair(load_matrices<true>(piece_at(lines, line + lane % 16, 2 * pair + lane / 16)));
}

}  // namespace ofa::sm90
