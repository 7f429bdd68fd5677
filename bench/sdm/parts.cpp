#include "bench/sdm/parts.hpp"

#include <utility>

#include "bench/grad/layer.hpp"
#include "reprise/base/gradient_rule.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/product_keys.hpp"

namespace reprise::bench {

namespace {

std::size_t elements_of_banks(const sdm_sizes& sizes) {
  return static_cast<std::size_t>(sizes.rows() * sizes.width);
}

signature writing(std::string name, std::initializer_list<std::pair<const char*, tensor_ref>> to) {
  signature declared{std::move(name)};
  for (const auto& [what, where] : to) declared.overwrites(what, where);
  return declared;
}

}  // namespace

bank_passes::bank_passes(pool& memory, stream_ref stream, const sdm_sizes& sizes,
                         const parameter& initial)
    : bank_{memory, elements_of_banks(sizes), stream},
      cotangent_{memory, elements_of_banks(sizes), stream},
      rule_{memory, 1, stream},
      forward{stream, writing("initial bank", {{"bank", as_tensor(bank_.all())}}),
              [to = bank_.all(), value = initial.value, streams = sizes.streams](step_scope& run) {
                launch(run, sdm_expand<bf16>, read<float>{elements_of<float>(value)},
                       write<bf16>{to}, streams);
              }},
      backward{stream,
               writing("cotangent and gradient of the bank",
                       {{"cotangent", as_tensor(cotangent_.all())}, {"gradient", initial.grad}}),
               [of = cotangent_.all(), rule = rule_.all(), grad = initial.grad,
                streams = sizes.streams](step_scope& run) {
                 launch(run, sdm_cast<bf16, bf16>, read<bf16>{view<const bf16>{}}, write<bf16>{of});
                 launch(run, sdm_bank_grad<bf16>, read<bf16>{of},
                        inout<float>{elements_of<float>(grad)}, read<std::int32_t>{rule}, streams);
               }} {
  fill(stream, write{rule_}, static_cast<std::int32_t>(gradient_rule::write));
}

addressing::half addressing::make(pool& memory, stream_ref stream, const sdm_sizes& sizes,
                                  std::int64_t side, std::int64_t each, int seed) {
  const std::int64_t rows = sizes.streams * sizes.tokens;
  const auto of = [&](std::int64_t count) {
    return buffer<float>{memory, static_cast<std::size_t>(rows * count), stream};
  };
  half made{of(side), of(side), of(each), of(each), of(side), of(side), {}, each};
  made.idx = {memory, static_cast<std::size_t>(rows * each), stream};
  fill_numbers(stream, made.first, seed);
  fill_numbers(stream, made.second, seed + 1);
  fill_numbers(stream, made.dval, seed + 2);
  return made;
}

addressing::addressing(pool& memory, stream_ref stream, const sdm_sizes& sizes, std::int64_t side)
    : writes_{make(memory, stream, sizes, side, sizes.writes, 1)},
      reads_{make(memory, stream, sizes, side, sizes.reads, 4)},
      forward{stream,
              writing("addressing", {{"k_idx", as_tensor(writes_.idx.all())},
                                     {"k_val", as_tensor(writes_.val.all())},
                                     {"q_idx", as_tensor(reads_.idx.all())},
                                     {"q_val", as_tensor(reads_.val.all())}}),
              [this, side, tokens = sizes.tokens](step_scope& run) {
                for (const half* const one : {&writes_, &reads_}) {
                  launch(run, product_key_top, read<float>{one->first.all()},
                         read<float>{one->second.all()}, write<std::int32_t>{one->idx.all()},
                         write<float>{one->val.all()}, side, one->each, tokens);
                }
              }},
      backward{
          stream,
          writing("addressing, backward", {{"first of writes", as_tensor(writes_.dfirst.all())},
                                           {"second of writes", as_tensor(writes_.dsecond.all())},
                                           {"first of reads", as_tensor(reads_.dfirst.all())},
                                           {"second of reads", as_tensor(reads_.dsecond.all())}}),
          [this, side](step_scope& run) {
            for (const half* const one : {&writes_, &reads_}) {
              launch(run, product_key_grad, read<std::int32_t>{one->idx.all()},
                     read<float>{one->val.all()}, read<float>{one->dval.all()},
                     write<float>{one->dfirst.all()}, write<float>{one->dsecond.all()}, side,
                     one->each);
            }
          }} {}

}  // namespace reprise::bench
