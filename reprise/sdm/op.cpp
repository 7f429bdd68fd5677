#include "reprise/sdm/op.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/grad/bring.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/passes.hpp"

namespace reprise {

namespace {

// Of elements that lie where they are, or behind a word.
template <class T>
view<const std::uint8_t> as_bytes(view<const T> from) {
  if (from.is_direct()) {
    return view<const std::uint8_t>::through(static_cast<const std::byte*>(from.place()),
                                             from.bytes());
  }
  return {static_cast<const std::uint8_t*>(from.place()), from.bytes()};
}

sdm_options with_checked_sizes(const sdm_options& options) {
  check_sizes(options.sizes);
  return options;
}

}  // namespace

void declare_keys(signature& in, const sdm_options& options, dtype storage) {
  in.key("slots", static_cast<std::uint64_t>(options.sizes.slots));
  in.key("storage", static_cast<std::uint64_t>(storage));
  in.key("chunk", static_cast<std::uint64_t>(options.sizes.chunk));
  in.key("saved rows", static_cast<std::uint64_t>(options.rows));
  in.key("wide bank gradient", options.wide_bank_grad ? 1 : 0);
}

template <element B>
sparse_delta_memory<B>::sparse_delta_memory(const sdm_options& options, parameter* initial,
                                            const std::string& name)
    : declared_{name},
      options_{with_checked_sizes(options)},
      k_idx{
          declared_.in<std::int32_t>("k_idx", {options.sizes.streams, any, options.sizes.writes})},
      k_val{declared_.in<float>("k_val", {options.sizes.streams, any, options.sizes.writes})},
      v{declared_.in<float>("v", {options.sizes.streams, any, options.sizes.width})},
      beta{declared_.in<float>("beta", {options.sizes.streams, any, 1})},
      g{declared_.in<float>("g", {options.sizes.streams, any, options.sizes.decays})},
      q_idx{declared_.in<std::int32_t>("q_idx", {options.sizes.streams, any, options.sizes.reads})},
      q_val{declared_.in<float>("q_val", {options.sizes.streams, any, options.sizes.reads})},
      bank{declared_.optional_in<B>("bank", {options.sizes.rows(), options.sizes.width},
                                    input_mode::direct)},
      readings{declared_.out<float>("readings")},
      final_bank{declared_.returned_state<B>("final_bank")},
      initial_{initial},
      trains_initial_{initial != nullptr && nn::declare(declared_, "initial", *initial)} {
  declare_keys(declared_, options_, dtype_of<B>);
  if (initial != nullptr) {
    nn::require_shape(*initial, {options.sizes.slots, options.sizes.width}, name, "initial bank");
  }
}

template <element B>
sdm_sizes sparse_delta_memory<B>::sizes_of(const dims& shape) const {
  sdm_sizes sizes = options_.sizes;
  sizes.tokens = shape[1];
  return sizes;
}

template <element B>
void sparse_delta_memory<B>::forward(forward_scope& run) const {
  const sdm_sizes sizes = sizes_of(run.shape(v));
  const auto need_tokens = [&](const char* name, const dims& shape) {
    if (shape[1] == sizes.tokens) return;
    throw usage_error{fmt::format("op '{}': {} has {} tokens, and v {}; give as many",
                                  declared_.name(), name, shape[1], sizes.tokens)};
  };
  need_tokens("k_idx", run.shape(k_idx));
  need_tokens("k_val", run.shape(k_val));
  need_tokens("beta", run.shape(beta));
  need_tokens("g", run.shape(g));
  need_tokens("q_idx", run.shape(q_idx));
  need_tokens("q_val", run.shape(q_val));
  const dims banks{sizes.rows(), sizes.width};
  const view<B> to = run.make(final_bank, banks);
  if (run.given(bank)) {
    if (initial_ != nullptr) {
      throw usage_error{fmt::format(
          "op '{}': a call brings a bank, and the op has a parameter for it; leave one out",
          declared_.name())};
    }
    launch(run, bring, read<std::uint8_t>{as_bytes(run[bank])},
           write<std::uint8_t>{
               view<std::uint8_t>{reinterpret_cast<std::uint8_t*>(to.data()), to.bytes()}});
  } else {
    const view<const float> from =
        initial_ != nullptr ? nn::values_of(*initial_) : view<const float>{};
    launch(run, sdm_expand<B>, read<float>{from}, write<B>{to}, sizes.streams);
  }
  const auto save = [&]<class T>(std::string_view name, const dims& shape) {
    return run.save<T>(name, shape);
  };
  const auto scratch = [&]<class T>(const dims& shape) { return run.scratch<T>(shape); };
  auto context = make_context<B>(sizes, options_.rows, save);
  sdm_forward<B>(run, sizes, options_.rows,
                 {run[k_idx], run[k_val], run[v], run[beta], run[g], run[q_idx], run[q_val]},
                 context, to, make_forward_scratch<float>(sizes, scratch),
                 run.make(readings, run.shape(v)));
}

template <element B>
template <class G>
void sparse_delta_memory<B>::backward_in(backward_scope& run) const {
  const sdm_sizes sizes = sizes_of(run.shape(v));
  const dims banks{sizes.rows(), sizes.width};
  const auto scratch = [&]<class T>(const dims& shape) { return run.scratch<T>(shape); };
  const auto saved = [&]<class T>(std::string_view name, const dims&) {
    return run.saved<T>(name);
  };
  const bool wants_bank = run.given(bank) && run.wants(bank);

  // The cotangent of the bank, in place where it is what the caller gets.
  view<G> cotangent;
  if constexpr (std::is_same_v<B, G>) {
    if (wants_bank) cotangent = run.grad(bank);
  }
  if (cotangent.size() == 0) cotangent = run.scratch<G>(banks);
  launch(run, sdm_cast<G, B>,
         read<B>{run.has_grad(final_bank) ? run.grad(final_bank) : view<const B>{}},
         write<G>{cotangent});

  view<const float> dy;
  if (run.has_grad(readings)) {
    dy = run.grad(readings);
  } else {
    const view<float> zeros = run.scratch<float>(run.shape(v));
    launch(run, sdm_cast<float, float>, read<float>{view<const float>{}}, write<float>{zeros});
    dy = zeros;
  }
  const auto gradient_of = [&](const input<float>& in) {
    return run.wants(in) ? run.grad(in) : run.scratch<float>(run.shape(in));
  };
  auto context = make_context<B>(sizes, options_.rows, saved);
  const sdm_gradients<float> to{gradient_of(k_val), gradient_of(v), gradient_of(beta),
                                gradient_of(g), gradient_of(q_val)};
  sdm_backward<B, G>(run, sizes, options_.rows,
                     {run.saved(k_idx), run.saved(k_val), run.saved(v), run.saved(beta),
                      run.saved(g), run.saved(q_idx), run.saved(q_val)},
                     context, run.state(final_bank), dy, cotangent,
                     make_backward_scratch<float>(sizes, scratch), to);

  if constexpr (!std::is_same_v<B, G>) {
    if (wants_bank) {
      launch(run, sdm_cast<B, G>, read<G>{cotangent}, write<B>{run.grad(bank)});
    }
  }
  if (trains_initial_) {
    const delivery d = run.add_to(*initial_);
    launch(run, sdm_bank_grad<G>, read<G>{cotangent}, inout<float>{d.to},
           read<std::int32_t>{d.rule}, sizes.streams);
  }
}

template <element B>
void sparse_delta_memory<B>::backward(backward_scope& run) const {
  if (options_.wide_bank_grad) {
    backward_in<float>(run);
  } else {
    backward_in<B>(run);
  }
}

template class sparse_delta_memory<float>;
template class sparse_delta_memory<bf16>;

}  // namespace reprise
