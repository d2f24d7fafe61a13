// The tile of a product's task on GPUs with matrix instructions; program/tiles.py cuts the programs accordingly.
#pragma once

namespace ofa {

constexpr int TILE_ROWS = 128, TILE_COLUMNS = 256, TILE_DEPTH = 64;

}  // namespace ofa
