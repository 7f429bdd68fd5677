// An exhaustive model of the publication protocol: its threads run in every order, and every load
// may find any store that the fences allow.
//
// Memory is a history of stores for each word. A thread has a view: how far it has come in each
// history, and it finds no store older than that. A release store carries its thread's view, an
// acquire load takes over what it carries, a read-modify-write finds the newest and hands on what
// it found (release sequences). What a store carries at the scope of the device alone is nothing to
// the host. The protocol itself is the template that the CUDA body runs.
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
    unsigned blocks = 3;
    unsigned launches = 1;
    bool first_publishes = false;  // instead of the last
    bool keeps_arrivals = false;   // the counter is not set back
  };
  struct verdict {
    std::uint64_t states = 0;    // that were come to, each once
    std::uint64_t runs = 0;      // of them, those in which all is done
    std::uint64_t early = 0;     // the host saw the word before the bytes
    std::uint64_t complete = 0;  // runs in which every launch published once
  };

  explicit publication_model(const setup& how) : how_{how} {}
  verdict explore() {
    state begin;
    for (auto& history : begin.memory) history.push_back({0, {}, true});
    begin.threads.resize(how_.blocks + 1);  // the host last
    go_on(begin);
    return found_;
  }

 private:
  static constexpr std::size_t most_blocks = 4;
  static constexpr std::size_t arrivals = most_blocks, word = most_blocks + 1;
  static constexpr std::size_t words = most_blocks + 2;  // the bytes of each block come first
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

  enum class op : std::uint8_t { write_bytes, arrive, clear, publish, look, read_bytes };
  struct wanted {
    op what;
    std::size_t at;
  };

  // A thread runs from its beginning on what it found so far, up to its next operation.
  struct replayed {
    const std::vector<unsigned>& results;
    std::size_t next = 0;
    unsigned ask(op what, std::size_t at) {
      if (next == results.size()) throw wanted{what, at};
      return results[next++];
    }
  };
  struct model_atomics {
    replayed& by;
    const setup& how;
    unsigned arrive() const {
      const unsigned before = by.ask(op::arrive, arrivals);
      if (!how.first_publishes) return before;
      return before == 0 ? how.blocks - 1 : 0;
    }
    void clear_arrivals() const {
      if (!how.keeps_arrivals) by.ask(op::clear, arrivals);
    }
    void publish() const { by.ask(op::publish, word); }
  };

  static constexpr unsigned not_written = 0;

  bool host_program(replayed& by, unsigned launch) {
    for (unsigned i = 0; i < looks; ++i) {
      if (by.ask(op::look, word) != launch + 1) continue;
      for (std::size_t b = 0; b < how_.blocks; ++b) {
        if (by.ask(op::read_bytes, b) != launch + 1) return false;
      }
      return true;
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
    for (std::size_t t = 0; t < now.threads.size(); ++t) {
      if (now.threads[t].done) continue;
      all_done = false;
      step(now, t);
    }
    if (!all_done) return;
    if (now.launch + 1 < how_.launches) return next_launch(now);
    ++found_.runs;
    if (now.published == how_.launches) ++found_.complete;
  }

  // The next launch of the node comes behind all of this one; the host goes on from what it saw.
  void next_launch(state now) {
    view all{};
    for (std::size_t t = 0; t + 1 < now.threads.size(); ++t) join(all, now.threads[t].seen);
    const view host = now.threads.back().seen;
    for (thread& one : now.threads) one = {{}, all, false};
    now.threads.back().seen = host;
    ++now.launch;
    go_on(now);
  }

  void step(const state& now, std::size_t t) {
    const bool is_host = t + 1 == now.threads.size();
    replayed by{now.threads[t].results};
    wanted next{};
    try {
      if (is_host) {
        if (!host_program(by, now.launch)) ++found_.early;
      } else {
        by.ask(op::write_bytes, t);
        model_atomics on{by, how_};
        publish_when_last(on, how_.blocks);
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
      case op::write_bytes: return put(now, t, next.at, now.launch + 1, std::memory_order_relaxed);
      case op::clear: return put(now, t, next.at, 0, std::memory_order_relaxed);
      case op::publish: {
        state counted = now;
        ++counted.published;
        return put(counted, t, next.at, now.launch + 1, how_.orders.publish,
                   how_.orders.publishes_to_system);
      }
      case op::arrive: return add(now, t, next.at);
      case op::look:
      case op::read_bytes: break;
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

  void add(const state& now, std::size_t t, std::size_t at) {
    state after = now;
    thread& me = after.threads[t];
    const store newest = after.memory[at].back();
    me.seen[at] = static_cast<unsigned>(after.memory[at].size());
    if (is_acquire(how_.orders.arrive)) join(me.seen, newest.carries);
    view carries = newest.carries;
    if (is_release(how_.orders.arrive)) join(carries, me.seen);
    carries[at] = me.seen[at];
    after.memory[at].push_back({newest.value + 1, carries, false});
    me.results.push_back(newest.value);
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
