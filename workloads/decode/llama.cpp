#include "workloads/decode/llama.hpp"

#include <utility>
#include <vector>

#include "reprise/kernel/launch.hpp"
#include "reprise/ops/argmax.hpp"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/ops/rope.hpp"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/swiglu.hpp"

namespace reprise::decode {

kv_cache::kv_cache(pool& into, stream_ref stream, const model_config& config,
                   std::int64_t slot_count, std::int64_t positions)
    : slots{slot_count},
      capacity{positions},
      per_layer{
          static_cast<std::size_t>((slots + 1) * config.kv_heads * capacity * config.head_dim)},
      keys{into, per_layer * static_cast<std::size_t>(config.layers), stream},
      values{into, per_layer * static_cast<std::size_t>(config.layers), stream} {
  // Verification compares all of it, positions that no token has reached too.
  fill(stream, write{keys}, 0.0F);
  fill(stream, write{values}, 0.0F);
}

view<float> kv_cache::keys_of(std::int64_t layer) const {
  return keys.all().subview(static_cast<std::size_t>(layer) * per_layer, per_layer);
}

view<float> kv_cache::values_of(std::int64_t layer) const {
  return values.all().subview(static_cast<std::size_t>(layer) * per_layer, per_layer);
}

llama::llama(pool& into, stream_ref stream, model_config sizes, model_weights loaded,
             std::int64_t slots, std::int64_t capacity)
    : config{std::move(sizes)},
      weights{std::move(loaded)},
      cache{into, stream, config, slots, capacity},
      inverse_frequencies{into, static_cast<std::size_t>(config.head_dim / 2), stream} {
  const std::vector<float> host = rope_inverse_frequencies(config.head_dim, config.rotary_base);
  copy(stream, read<float>{view<const float>{host.data(), host.size()}},
       write{inverse_frequencies});
}

namespace {

// The rows of one run.
struct row_inputs {
  read<std::int32_t> tokens;
  read<std::int32_t> positions;
  read<std::int32_t> slots;
};

// Scratch of one run, the same memory for every layer: layers run in order.
struct activations {
  activations(step_scope& run, const model_config& c, std::int64_t rows)
      : residual{run.scratch<float>({rows, c.width})},
        normed{run.scratch<float>({rows, c.width})},
        query{run.scratch<float>({rows, c.heads * c.head_dim})},
        key{run.scratch<float>({rows, c.kv_heads * c.head_dim})},
        value{run.scratch<float>({rows, c.kv_heads * c.head_dim})},
        attended{run.scratch<float>({rows, c.heads * c.head_dim})},
        gate{run.scratch<float>({rows, c.inner_width})},
        up{run.scratch<float>({rows, c.inner_width})} {}

  view<float> residual, normed, query, key, value, attended, gate, up;
};

template <class W>
read<W> weight(const parameter& p) {
  return read<W>{elements_of<W>(p.value)};
}

template <class W>
void attention_block(step_scope& run, const llama& model, std::int64_t layer,
                     const row_inputs& rows, const activations& a) {
  const model_config& c = model.config;
  const layer_weights& w = model.weights.layers[static_cast<std::size_t>(layer)];
  const attention_shape shape{c.heads, c.kv_heads, c.head_dim, model.cache.capacity};
  const std::int64_t queries = c.heads * c.head_dim;
  const std::int64_t keys = c.kv_heads * c.head_dim;
  const view<float> key_cache = model.cache.keys_of(layer);
  const view<float> value_cache = model.cache.values_of(layer);

  launch(run, rms_norm<float, W>, read(a.residual), weight<W>(w.attention_norm), write(a.normed),
         c.width, c.norm_epsilon);
  launch(run, matmul<float, W>, read(a.normed), weight<W>(w.query), write(a.query), queries,
         c.width);
  launch(run, matmul<float, W>, read(a.normed), weight<W>(w.key), write(a.key), keys, c.width);
  launch(run, matmul<float, W>, read(a.normed), weight<W>(w.value), write(a.value), keys, c.width);
  launch(run, rope<float>, inout(a.query), rows.positions, read(model.inverse_frequencies), c.heads,
         c.head_dim);
  launch(run, rope<float>, inout(a.key), rows.positions, read(model.inverse_frequencies),
         c.kv_heads, c.head_dim);
  launch(run, cache_append<float, float>, read(a.key), read(a.value), rows.slots, rows.positions,
         write(key_cache), write(value_cache), shape);
  launch(run, attention<float, float>, read(a.query), read(key_cache), read(value_cache),
         rows.slots, rows.positions, write(a.attended), shape);
  launch(run, matmul_add<float, W>, read(a.attended), weight<W>(w.attention_out), inout(a.residual),
         c.width, queries);
}

template <class W>
void mlp_block(step_scope& run, const llama& model, std::int64_t layer, const activations& a) {
  const model_config& c = model.config;
  const layer_weights& w = model.weights.layers[static_cast<std::size_t>(layer)];
  launch(run, rms_norm<float, W>, read(a.residual), weight<W>(w.mlp_norm), write(a.normed), c.width,
         c.norm_epsilon);
  launch(run, matmul<float, W>, read(a.normed), weight<W>(w.gate), write(a.gate), c.inner_width,
         c.width);
  launch(run, matmul<float, W>, read(a.normed), weight<W>(w.up), write(a.up), c.inner_width,
         c.width);
  launch(run, swiglu<float>, read(a.gate), read(a.up), write(a.gate));
  launch(run, matmul_add<float, W>, read(a.gate), weight<W>(w.down), inout(a.residual), c.width,
         c.inner_width);
}

struct head {
  std::int64_t first_row;  // logits of the rows from here on
  std::int64_t rows;
  view<float> logits;
};

template <class W>
void forward(step_scope& run, const llama& model, const row_inputs& rows, const head& out) {
  const model_config& c = model.config;
  const auto count = static_cast<std::int64_t>(rows.tokens.size());
  const activations a{run, c, count};
  launch(run, embedding<float, W>, rows.tokens, weight<W>(model.weights.embedding),
         write(a.residual), c.width);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    run.mark({"resid_pre", static_cast<int>(layer)}, as_tensor(a.residual, {count, c.width}));
    attention_block<W>(run, model, layer, rows, a);
    mlp_block<W>(run, model, layer, a);
  }
  const auto first = static_cast<std::size_t>(out.first_row * c.width);
  const auto size = static_cast<std::size_t>(out.rows * c.width);
  const view<float> normed = a.normed.subview(0, size);
  launch(run, rms_norm<float, W>, read(a.residual.subview(first, size)),
         weight<W>(model.weights.final_norm), write(normed), c.width, c.norm_epsilon);
  launch(run, matmul<float, W>, read(normed), weight<W>(model.weights.output), write(out.logits),
         c.vocabulary, c.width);
}

void declare_weights(signature& declared, const model_weights& weights, bool tied) {
  declared.uses("embedding", weights.embedding);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const layer_weights& l = weights.layers[i];
    const std::string at = "layer " + std::to_string(i) + " ";
    declared.uses(at + "attention norm", l.attention_norm);
    declared.uses(at + "query", l.query);
    declared.uses(at + "key", l.key);
    declared.uses(at + "value", l.value);
    declared.uses(at + "attention out", l.attention_out);
    declared.uses(at + "mlp norm", l.mlp_norm);
    declared.uses(at + "gate", l.gate);
    declared.uses(at + "up", l.up);
    declared.uses(at + "down", l.down);
  }
  declared.uses("final norm", weights.final_norm);
  if (!tied) declared.uses("output", weights.output);
}

model_step make_step(const llama& model, std::string name, bool last_row_only, bool sampled) {
  signature declared{std::move(name)};
  const auto tokens = declared.in<std::int32_t>("tokens", {any});
  const auto positions = declared.in<std::int32_t>("positions", {any});
  const auto slots = declared.in<std::int32_t>("slots", {any});
  std::optional<sampling_inputs> sampling;
  if (sampled) {
    sampling = sampling_inputs{
        declared.in<float>("temperatures", {any}), declared.in<float>("top_ps", {any}),
        declared.in<std::uint64_t>("seeds", {any}), declared.in<std::uint64_t>("counters", {any})};
  }
  const auto next = declared.out<std::int32_t>("next");
  const auto logits = declared.out<float>("logits");
  declare_weights(declared, model.weights, model.config.tied_output);
  // A row of the cache is written at its own position, with the same values however often.
  declared.overwrites("key cache", as_tensor(model.cache.keys.all()));
  declared.overwrites("value cache", as_tensor(model.cache.values.all()));

  const auto body = [=, &model](step_scope& run) {
    const row_inputs rows{read(run[tokens]), read(run[positions]), read(run[slots])};
    const std::int64_t count = run.shape(tokens)[0];
    const std::int64_t outputs = last_row_only ? 1 : count;
    const std::int64_t vocabulary = model.config.vocabulary;
    const head out{count - outputs, outputs, run.make(logits, {outputs, vocabulary})};
    if (model.weights.storage == dtype::bf16) {
      forward<bf16>(run, model, rows, out);
    } else {
      forward<float>(run, model, rows, out);
    }
    const view<std::int32_t> chosen = run.make(next, {outputs});
    if (sampling) {
      launch(run, sample, read(out.logits), read(run[sampling->temperatures]),
             read(run[sampling->top_ps]), read(run[sampling->seeds]), read(run[sampling->counters]),
             write(chosen), vocabulary);
    } else {
      launch(run, argmax, read(out.logits), write(chosen), vocabulary);
    }
  };
  return {tokens,
          positions,
          slots,
          sampling,
          next,
          logits,
          last_row_only ? step{std::move(declared), body, eager_only{"prefill"}}
                        : step{std::move(declared), body}};
}

}  // namespace

model_step prefill_step(const llama& model, bool sampled) {
  return make_step(model, "prefill", true, sampled);
}

model_step decode_step(const llama& model, bool sampled) {
  return make_step(model, "decode", false, sampled);
}

}  // namespace reprise::decode
