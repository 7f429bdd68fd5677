// The six ops of grad_ops.hpp once more, on the host and over vectors: what they must give, bit for
// bit, however they run. Each function is one forward or one backward; each operation is rounded on
// its own, as the build compiles the CPU.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace reprise::scenarios::on_host {

using floats = std::vector<float>;

// x and y hold rows as wide as w; `by` is the magnification in force.
floats scaled(const floats& x, const floats& w, float by);
// dx; and what is put into the gradient of w.
floats scaled_dx(const floats& dy, const floats& w, float by);
floats scaled_dw(const floats& dy, const floats& x, std::size_t width, float by);

// Where the random numbers of one forward begin. The backward of x is the same function of dy.
struct draw {
  std::uint64_t seed = 0;
  std::uint64_t next = 0;
};
floats noisy(const floats& x, const draw& from);
// How far one forward moves the counter.
std::uint64_t draws_of_noisy(std::size_t count);

floats counted(const floats& x);
floats counted_dx(const floats& dy, const floats& x);
// What one forward does to the running value.
void count_step(const floats& x, std::int32_t& steps, floats& running);

floats rewinding(const floats& x);
floats rewinding_dx(const floats& dy, const floats& x);

// b is empty where it is left out.
floats joined(const floats& a, const floats& b);
floats joined_da(const floats& dy, const floats& b);
floats joined_db(const floats& dy, const floats& a);

// y, and the state.
std::pair<floats, floats> remembering(const floats& x);
// dmemory is empty where there is none.
floats remembering_dx(const floats& dy, const floats& dmemory, const floats& x);

// w - rate grad.
void descend(floats& w, const floats& grad, float rate);

}  // namespace reprise::scenarios::on_host
