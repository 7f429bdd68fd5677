// An exhaustive model of the publication protocol: its threads run in every order, and every load
// may find any store that the orders allow.
//
// Memory is a history of stores for each word. A thread has a view: how far it has come in each
// history, and it finds no store older than that. A release store carries its thread's view, an
// acquire load takes over what it carries. What a store carries at the scope of the device alone is
// nothing to the host. The publisher begins behind all blocks of all producers, with the views of
// them all: that is what an edge of a graph gives. The protocol itself is the template that the
// CUDA body runs.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "reprise/tap/publication_protocol.hpp"

namespace reprise::test {

class publication_model {
 public:
  // What a weaker implementation would do.
  struct setup {
    publication_orders orders{};
    unsigned producers = 2;
    unsigned blocks = 2;  // of each
    unsigned launches = 1;
    bool second_is_off = false;  // the first producer runs in the first launch alone
    bool waits = true;           // the publisher, for the producers
    bool takes_back = true;
  };
  struct verdict {
    std::uint64_t states = 0;    // that were come to, each once
    std::uint64_t runs = 0;      // of them, those in which all is done
    std::uint64_t early = 0;     // the host saw a word before the bytes
    std::uint64_t complete = 0;  // runs in which every producer that ran was said once
  };

  explicit publication_model(const setup& how) : how_{how} {}
  verdict explore() {
    state begin;
    for (auto& history : begin.memory) history.push_back({0, {}, true});
    begin.threads.resize(producing() + 2);  // the publisher and the host last
    for (std::size_t t = 0; t < producing(); ++t) begin.threads[t].done = is_off(t, 0);
    go_on(begin);
    return found_;
  }

 private:
  static constexpr std::size_t most_producers = 2, most_blocks = 2;
  static constexpr std::size_t bytes_at(std::size_t producer, std::size_t block) {
    return producer * most_blocks + block;
  }
  static constexpr std::size_t taken_at(std::size_t producer) {
    return most_producers * most_blocks + producer;
  }
  static constexpr std::size_t word_at(std::size_t producer) {
    return taken_at(most_producers) + producer;
  }
  static constexpr std::size_t words = most_producers * (most_blocks + 2);
  static constexpr unsigned looks = 2;

  using view = std::array<unsigned, words>;
  struct store {
    unsigned value;
    view carries;
    bool to_system;
  };
  struct thread {
    std::vector<unsigned> results;  // of its operations so far, from which it is run again
    view seen{};
    bool done = false;
  };
  struct state {
    std::array<std::vector<store>, words> memory;
    std::vector<thread> threads;
    unsigned launch = 0;
    unsigned published = 0;
  };

  std::size_t producing() const { return std::size_t{how_.producers} * how_.blocks; }
  bool is_off(std::size_t t, unsigned launch) const {
    return how_.second_is_off && launch == 1 && t < how_.blocks;
  }

  enum class op : std::uint8_t { write, read, publish, look };
  struct wanted {
    op what;
    std::size_t at;
    unsigned value = 0;  // of a write
  };

  // A thread runs from its beginning on what it found so far, up to its next operation.
  struct replayed {
    const std::vector<unsigned>& results;
    std::size_t next = 0;
    unsigned ask(op what, std::size_t at, unsigned value = 0) {
      if (next == results.size()) throw wanted{what, at, value};
      return results[next++];
    }
  };
  struct model_publisher {
    replayed& by;
    const setup& how;
    std::size_t producer;
    std::uint64_t taken() const { return by.ask(op::read, taken_at(producer)); }
    void publish(std::uint64_t word) const {
      by.ask(op::publish, word_at(producer), static_cast<unsigned>(word));
    }
    void take_back() const {
      if (how.takes_back) by.ask(op::write, taken_at(producer), 0);
    }
  };

  void block_program(replayed& by, std::size_t t, unsigned launch) const {
    const std::size_t producer = t / how_.blocks, block = t % how_.blocks;
    by.ask(op::write, bytes_at(producer, block), launch + 1);
    if (block == 0) by.ask(op::write, taken_at(producer), launch + 1);
  }

  void publisher_program(replayed& by) const {
    for (std::size_t p = 0; p < how_.producers; ++p) {
      model_publisher on{by, how_, p};
      publish_one(on);
    }
  }

  // False: a word of this launch was there, and not all of its bytes.
  bool host_program(replayed& by, unsigned launch) const {
    for (std::size_t p = 0; p < how_.producers; ++p) {
      for (unsigned i = 0; i < looks; ++i) {
        if (by.ask(op::look, word_at(p)) != launch + 1) continue;
        for (std::size_t b = 0; b < how_.blocks; ++b) {
          if (by.ask(op::read, bytes_at(p, b)) != launch + 1) return false;
        }
        break;
      }
    }
    return true;
  }

  // All of a state, so that each is gone on from once however it was come to.
  static std::string print_of(const state& now) {
    std::string text;
    const auto add = [&](unsigned value) { text += static_cast<char>(value); };
    add(now.launch);
    add(now.published);
    for (const auto& history : now.memory) {
      add(static_cast<unsigned>(history.size()));
      for (const store& one : history) {
        add(one.value);
        add(one.to_system ? 1 : 0);
        for (const unsigned seen : one.carries) add(seen);
      }
    }
    for (const thread& one : now.threads) {
      add(one.done ? 1 : 0);
      add(static_cast<unsigned>(one.results.size()));
      for (const unsigned result : one.results) add(result);
      for (const unsigned seen : one.seen) add(seen);
    }
    return text;
  }

  void go_on(const state& now) {
    if (!known_.insert(print_of(now)).second) return;
    ++found_.states;
    bool all_done = true;
    bool produced = true;
    for (std::size_t t = 0; t < now.threads.size(); ++t) {
      if (now.threads[t].done) continue;
      all_done = false;
      if (t < producing()) produced = false;
      if (t == producing() && !produced && how_.waits) continue;
      step(now, t);
    }
    if (!all_done) return;
    if (now.launch + 1 < how_.launches) return next_launch(now);
    ++found_.runs;
    const unsigned off = how_.second_is_off && how_.launches > 1 ? 1 : 0;
    if (now.published == how_.launches * how_.producers - off) ++found_.complete;
  }

  // The next launch comes behind all of this one; the host goes on from what it saw.
  void next_launch(state now) {
    view all{};
    for (std::size_t t = 0; t + 1 < now.threads.size(); ++t) join(all, now.threads[t].seen);
    const view host = now.threads.back().seen;
    for (thread& one : now.threads) one = {{}, all, false};
    now.threads.back().seen = host;
    ++now.launch;
    for (std::size_t t = 0; t < producing(); ++t) now.threads[t].done = is_off(t, now.launch);
    go_on(now);
  }

  void step(state now, std::size_t t) {
    const bool is_publisher = t == producing();
    const bool is_host = t == producing() + 1;
    if (is_publisher && how_.waits && now.threads[t].results.empty()) {
      for (std::size_t p = 0; p < producing(); ++p) join(now.threads[t].seen, now.threads[p].seen);
    }
    replayed by{now.threads[t].results};
    wanted next{};
    try {
      if (is_host) {
        if (!host_program(by, now.launch)) ++found_.early;
      } else if (is_publisher) {
        publisher_program(by);
      } else {
        block_program(by, t, now.launch);
      }
      state after = now;
      after.threads[t].done = true;
      return go_on(after);
    } catch (const wanted& operation) {
      next = operation;
    }
    perform(now, t, next, is_host);
  }

  void perform(const state& now, std::size_t t, const wanted& next, bool is_host) {
    switch (next.what) {
      case op::write: return put(now, t, next.at, next.value, std::memory_order_relaxed);
      case op::publish: {
        state counted = now;
        ++counted.published;
        return put(counted, t, next.at, next.value, how_.orders.publish,
                   how_.orders.publishes_to_system);
      }
      case op::look:
      case op::read: break;
    }
    const bool acquires = next.what == op::look && is_acquire(how_.orders.look);
    const auto& history = now.memory[next.at];
    for (unsigned i = now.threads[t].seen[next.at]; i < history.size(); ++i) {
      state after = now;
      thread& me = after.threads[t];
      me.seen[next.at] = i;
      if (acquires && (!is_host || history[i].to_system)) join(me.seen, history[i].carries);
      me.results.push_back(history[i].value);
      go_on(after);
    }
  }

  void put(const state& now, std::size_t t, std::size_t at, unsigned value, std::memory_order order,
           bool to_system = false) {
    state after = now;
    thread& me = after.threads[t];
    me.seen[at] = static_cast<unsigned>(after.memory[at].size());
    view carries{};
    if (is_release(order)) carries = me.seen;
    carries[at] = me.seen[at];
    after.memory[at].push_back({value, carries, to_system});
    me.results.push_back(0);
    go_on(after);
  }

  static void join(view& into, const view& other) {
    for (std::size_t i = 0; i < words; ++i) into[i] = std::max(into[i], other[i]);
  }
  static bool is_release(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel;
  }
  static bool is_acquire(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
  }

  setup how_;
  verdict found_;
  std::unordered_set<std::string> known_;
};

}  // namespace reprise::test
