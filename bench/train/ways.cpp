#include "bench/train/ways.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "bench/grad/subject.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/nn/network.hpp"
#include "reprise/nn/optimizers.hpp"
#include "reprise/nn/squared_error.hpp"
#include "reprise/train/graphed_heads.hpp"
#include "reprise/train/graphed_loss.hpp"
#include "reprise/train/graphed_network.hpp"
#include "reprise/train/training_run.hpp"
#include "reprise/train/whole_step.hpp"

namespace reprise::bench {

namespace {

constexpr std::uint64_t seed = 7;

// What each way trains, with memory of its own.
struct training {
  training(const deep_shape& of, pool& memory, stream_ref on, bool records, bool branches = true)
      : shape{of},
        stream{on},
        set{memory, on, deep_parameters(of), seed},
        updates{set, memory, on, {.rate = 1e-3F}},
        steps{on.device(), {.record = records, .branches = branches, .budget = &budget}},
        batch{make_batch(of, memory, on)},
        one{memory, 1, on} {
    fill(on, write{one}, 1.0F);
  }

  std::vector<float> weights() { return on_host(stream, set.values()); }

  deep_shape shape;
  stream_ref stream;
  byte_budget budget{byte_budget::unlimited};
  nn::parameter_set set;
  nn::sgd updates;
  replay_cache steps;
  deep_batch batch;
  buffer<float> one;  // the cotangent of the loss
};

graphed_loss make_loss(training& of, bool records) {
  return graphed_loss{{{"error", loss_of(nn::squared_error{})}}, of.budget, {.on = records}};
}

// The gradient of y.
tensor<float> compare(training& of, graphed_loss& loss, const tensor<float>& y) {
  const std::array predictions{y};
  const std::array targets{operand{loss.targets<float>(0), of.batch.target}};
  return loss(of.stream, predictions, targets, of.one.all()).gradients.front();
}

// Layers of a network, each with recordings of its own, or none.
struct layers_apart : training {
  layers_apart(const deep_shape& shape, pool& memory, stream_ref stream, bool records)
      : training{shape, memory, stream, records},
        net{budget, {.record = records}},
        loss{make_loss(*this, records)},
        run{{&loss}} {
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      net.add(deep_layers(fmt::format("layer {}", i), set, i, i + 1));
    }
    run.start(stream);
  }

  void step() {
    set.drop_gradients();
    const nn::network_call call = net.forward(stream, operand{net.x(), batch.x});
    net.backward(stream, call, compare(*this, loss, call.y));
    updates.update(stream, steps);
  }

  nn::network net;
  graphed_loss loss;
  training_run run;
};

struct one_pair : training {
  one_pair(const deep_shape& shape, pool& memory, stream_ref stream)
      : training{shape, memory, stream, true},
        net{deep_layers("network", set, 0, shape.layers), budget, {.on = true}},
        loss{make_loss(*this, true)},
        run{{&net, &loss}} {
    run.start(stream);
  }

  void step() {
    set.drop_gradients();
    run.batch_start();
    const part_call call = net.forward(stream, operand{net.x(), batch.x});
    net.backward(stream, call, compare(*this, loss, call.y));
    updates.update(stream, steps);
  }

  graphed_network net;
  graphed_loss loss;
  training_run run;
};

// The last layer is the only head.
struct with_heads : training {
  with_heads(const deep_shape& shape, pool& memory, stream_ref stream)
      : training{shape, memory, stream, true},
        trunk{deep_layers("trunk", set, 0, shape.layers - 1), budget, {.on = true}},
        heads{{{"head", deep_layers("head", set, shape.layers - 1, shape.layers)}},
              budget,
              {.on = true}},
        loss{make_loss(*this, true)},
        run{{&trunk, &heads, &loss}} {
    run.start(stream);
  }

  void step() {
    set.drop_gradients();
    run.batch_start();
    const part_call below = trunk.forward(stream, operand{trunk.x(), batch.x});
    const part_call above = heads.forward(stream, 0, below.y);
    const tensor<float> dy = compare(*this, loss, above.y);
    trunk.backward(stream, below, heads.backward(stream, 0, above, dy));
    updates.update(stream, steps);
  }

  graphed_network trunk;
  graphed_heads heads;
  graphed_loss loss;
  training_run run;
};

struct as_one : training {
  as_one(const deep_shape& shape, pool& memory, stream_ref stream, bool branches)
      : training{shape, memory, stream, true, branches},
        whole{deep_layers("network", set, 0, shape.layers), loss_of(nn::squared_error{}),
              updates.part(), memory, stream} {}

  void step() {
    whole.run(stream, steps,
              {as_tensor(batch.x.get(), batch.x.shape()),
               as_tensor(batch.target.get(), batch.target.shape())});
  }

  whole_step whole;
};

template <class Way>
train_way named(std::string name, std::shared_ptr<Way> way, bool records, std::uint64_t launches) {
  return {.name = std::move(name),
          .step = [way] { way->step(); },
          .weights = [way] { return way->weights(); },
          .records = records,
          .launches = launches};
}

train_way whole(std::string name, std::shared_ptr<as_one> way) {
  train_way made = named(std::move(name), way, true, 1);
  made.nodes = [way] { return way->steps.report().recordings.front().nodes; };
  return made;
}

}  // namespace

std::vector<train_way> ways_of(const deep_shape& shape, pool& memory, stream_ref stream) {
  const auto layers = static_cast<std::uint64_t>(shape.layers);
  return {named(eager_way, std::make_shared<layers_apart>(shape, memory, stream, false), false, 0),
          named(pairs_way, std::make_shared<layers_apart>(shape, memory, stream, true), true,
                2 * layers + 2),
          named(heads_way, std::make_shared<with_heads>(shape, memory, stream), true, 6),
          named(pair_way, std::make_shared<one_pair>(shape, memory, stream), true, 4),
          whole(chain_way, std::make_shared<as_one>(shape, memory, stream, false)),
          whole(whole_way, std::make_shared<as_one>(shape, memory, stream, true))};
}

}  // namespace reprise::bench
