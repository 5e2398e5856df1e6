// Digits of scalars sorted by bucket: what both passes of the sort share.
//
// A *column* is a bin of one set of buckets (cuzk/windows.cuh): 2^low_bits buckets that follow each other. Columns of all
// sets, and of all parts (scalar vectors), are numbered in one row, and bucket b of column c has the number
// c 2^low_bits + b. The first pass takes tiles of scalars and gathers each tile's digits by column (bucket_sort.cu); the
// second takes tiles of one column each and gathers by bucket (bucket_sort_second.cu). A tile is gathered in shared memory
// and written out in runs. Counts of a tile stand in a row of a table that is then summed down its columns, so each tile
// knows where its runs begin, and no block waits for another. Any distribution costs about the same: a column with many
// digits has many tiles.
//
// Digits of zero are dropped. The order within a bucket is that of chance.
#pragma once

#include "cuzk/block_scan.cuh"
#include "cuzk/windows.cuh"

namespace cuzk {
namespace bucket_sort {

inline constexpr u32 threads = 512;
// Elements of a tile: six bytes each of shared memory, beside two tables of up to 2^11 words, so that a multiprocessor
// holds two blocks.
inline constexpr u32 tile_len = 28 * threads;
// Elements that a thread has on their way at a time.
inline constexpr u32 at_a_time = 7;

}  // namespace bucket_sort
}  // namespace cuzk
