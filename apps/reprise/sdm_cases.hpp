// Case files of the sparse-delta-memory op: one call with its results, as JSON.
//
// Sizes P, S, D, T, W, R and G, arrays as nested lists in the shapes of sdm/sizes.hpp: inputs.bank,
// k_idx, k_val, v, beta, g, q_idx and q_val; readings, final_bank; dy, and d_final_bank or null;
// grads.bank, k_val, v, beta, g and q_val; chunks, the chunk sizes to run; name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reprise/platform/check_sdm.hpp"

namespace reprise::app {

// A file, or each *.json of a folder, in the order of their names. Throws usage_error, naming the
// file and what is wrong with it: what is missing, of another shape, or no index of its stream.
std::vector<sdm_case> read_sdm_cases(const std::vector<std::filesystem::path>& paths);

}  // namespace reprise::app
