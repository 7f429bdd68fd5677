#include "reprise/sdm/passes.hpp"

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/sdm/backward.hpp"
#include "reprise/sdm/forward.hpp"
#include "reprise/sdm/gradients.hpp"
#include "reprise/sdm/order.hpp"
#include "reprise/sdm/pairs.hpp"
#include "reprise/sdm/weights.hpp"

namespace reprise {

namespace {

template <class T>
read<T> read_of(view<T> from) {
  return read<T>{from};
}

}  // namespace

sdm_counts counts_of(const sdm_sizes& s, saved_rows format, std::int64_t stored) {
  check_sizes(s);
  const std::int64_t chunks = s.streams * s.chunks();
  const std::int64_t events = chunks * s.events();
  return {events,
          chunks * (s.events() + 1),
          chunks * s.chunk * s.chunk,
          s.streams * s.tokens * s.width,
          chunks * s.chunk * s.writes * row_bytes(format, s.width, stored),
          events * sdm::parts_of(s.width),
          s.streams * s.tokens * s.writes};
}

template <class B>
void sdm_forward(site at, const sdm_sizes& sizes, saved_rows format,
                 const sdm_inputs<sdm::arithmetic<B>>& in, sdm_context<B>& c, view<B> bank,
                 const sdm_forward_scratch<sdm::arithmetic<B>>& scratch,
                 view<sdm::arithmetic<B>> readings) {
  using X = sdm::arithmetic<B>;
  check_sizes(sizes);
  c.rewound = false;
  if (sizes.tokens == 0) return;
  const read<std::int32_t> order{c.order};
  const read<std::int32_t> runs{c.runs};
  const read<X> beta{in.beta};

  launch(at, sdm_order, read<std::int32_t>{in.k_idx}, read<std::int32_t>{in.q_idx}, write(c.order),
         write(c.place), write(c.run_of), write(c.runs), write(c.rows), write(c.written), sizes);
  launch(at, sdm_weights<X>, order, runs, read<X>{in.k_val}, read<X>{in.g}, read<X>{in.q_val},
         write(c.level), write(c.head), write(c.tail), write(c.keep), sizes);
  launch(at, sdm_pairs<X>, order, read_of(c.place), read_of(c.run_of), runs, read<X>{in.k_val},
         read<X>{in.q_val}, read_of(c.level), write(c.recalls), write(c.readings), sizes);
  launch(at, sdm_invert<X>, read_of(c.recalls), beta, write(scratch.inverse),
         sdm_inverse::scaled_columns, sizes);

  for (std::int64_t n = 0; n < sizes.chunks(); ++n) {
    launch(at, sdm_recall<B>, read_of(bank), read<std::int32_t>{in.k_idx},
           read<std::int32_t>{in.q_idx}, read_of(c.head), read<X>{in.v}, write(c.errors),
           write(readings), sizes, n);
    launch(at, sdm_solve<X>, read_of(scratch.inverse), read_of(c.readings), beta, inout(c.errors),
           inout(readings), sizes, n);
    launch(at, sdm_write<B>, order, runs, read_of(c.rows), read_of(c.written), read_of(c.tail),
           read_of(c.keep), beta, read_of(c.errors), inout(bank), write(c.saved), format, sizes, n);
  }
}

template <class B, class G>
void sdm_backward(site at, const sdm_sizes& sizes, saved_rows format,
                  const sdm_inputs<sdm::arithmetic<B>>& in, sdm_context<B>& c, view<B> bank,
                  view<const sdm::arithmetic<B>> dy, view<G> cotangent,
                  const sdm_backward_scratch<sdm::arithmetic<B>>& scratch,
                  const sdm_gradients<sdm::arithmetic<B>>& to) {
  using X = sdm::arithmetic<B>;
  check_sizes(sizes);
  if (c.rewound) {
    throw usage_error{
        "sdm: a second backward of one forward, whose bank is rewound already; run the forward "
        "again first"};
  }
  c.rewound = true;
  if (sizes.tokens == 0) return;
  const read<std::int32_t> order{c.order};
  const read<std::int32_t> runs{c.runs};
  const read<X> beta{in.beta};
  const read<X> errors{c.errors};

  launch(at, sdm_invert<X>, read_of(c.recalls), beta, write(scratch.inverse),
         sdm_inverse::scaled_rows, sizes);
  for (std::int64_t n = sizes.chunks() - 1; n >= 0; --n) {
    launch(at, sdm_gather<G>, read_of(cotangent), read<std::int32_t>{in.k_idx}, read_of(c.tail),
           write(scratch.m), sizes, n);
    launch(at, sdm_solve_back<X>, read_of(scratch.inverse), read_of(c.readings), read<X>{dy},
           inout(scratch.m), sizes, n);
    launch(at, sdm_rewind<B, G>, order, runs, read_of(c.rows), read_of(c.written), read_of(c.head),
           read_of(c.keep), beta, read<X>{dy}, read_of(scratch.m), errors, read_of(c.saved),
           inout(bank), inout(cotangent), write(scratch.of_state), write(scratch.of_cotangent),
           write(scratch.of_both), format, sizes, n);
  }

  launch(at, sdm_products<X>, read<X>{dy}, read_of(scratch.m), errors, beta,
         write(scratch.of_readings), write(scratch.of_errors), sizes);
  launch(at, sdm_event_grads<X>, order, read_of(c.place), runs, read<X>{in.k_val},
         read<X>{in.q_val}, read_of(c.level), read_of(scratch.of_state),
         read_of(scratch.of_cotangent), read_of(scratch.of_both), read_of(scratch.of_readings),
         read_of(scratch.of_errors), write(to.k_val), write(to.q_val), write(scratch.dg_by_write),
         sizes);
  launch(at, sdm_token_grads<X>, read_of(scratch.m), errors, beta, read_of(scratch.dg_by_write),
         write(to.v), write(to.beta), write(to.g), sizes);
}

template void sdm_forward(site, const sdm_sizes&, saved_rows, const sdm_inputs<float>&,
                          sdm_context<float>&, view<float>, const sdm_forward_scratch<float>&,
                          view<float>);
template void sdm_forward(site, const sdm_sizes&, saved_rows, const sdm_inputs<float>&,
                          sdm_context<bf16>&, view<bf16>, const sdm_forward_scratch<float>&,
                          view<float>);
template void sdm_forward(site, const sdm_sizes&, saved_rows, const sdm_inputs<double>&,
                          sdm_context<double>&, view<double>, const sdm_forward_scratch<double>&,
                          view<double>);
template void sdm_backward(site, const sdm_sizes&, saved_rows, const sdm_inputs<float>&,
                           sdm_context<float>&, view<float>, view<const float>, view<float>,
                           const sdm_backward_scratch<float>&, const sdm_gradients<float>&);
template void sdm_backward(site, const sdm_sizes&, saved_rows, const sdm_inputs<float>&,
                           sdm_context<bf16>&, view<bf16>, view<const float>, view<bf16>,
                           const sdm_backward_scratch<float>&, const sdm_gradients<float>&);
template void sdm_backward(site, const sdm_sizes&, saved_rows, const sdm_inputs<float>&,
                           sdm_context<bf16>&, view<bf16>, view<const float>, view<float>,
                           const sdm_backward_scratch<float>&, const sdm_gradients<float>&);
template void sdm_backward(site, const sdm_sizes&, saved_rows, const sdm_inputs<double>&,
                           sdm_context<double>&, view<double>, view<const double>, view<double>,
                           const sdm_backward_scratch<double>&, const sdm_gradients<double>&);

}  // namespace reprise
