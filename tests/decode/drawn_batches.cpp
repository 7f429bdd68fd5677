#include "tests/decode/drawn_batches.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>

namespace reprise::test {

namespace {

class drawing {
 public:
  drawing(std::uint64_t seed, const std::vector<std::vector<std::int32_t>>& texts)
      : dice_{seed}, texts_{texts} {
    made_.layout = one_in(2) ? batch_layout::packed : batch_layout::batched;
    prefills_ = one_in(2);
    for (std::size_t i = 0; i < texts.size(); ++i) waiting_.push_back(i);
    shuffle(waiting_);
    if (one_in(2)) waiting_.resize(1 + dice_() % waiting_.size());
  }

  drawn_run run() {
    while (!waiting_.empty() || runs() != 0) {
      arrive();
      shuffle(places_);
      if (prefills_ && one_in(3)) prefill();
      if (runs() != 0) {
        made_.layout == batch_layout::packed ? pack() : batch();
        leave();
      }
    }
    count();
    return std::move(made_);
  }

 private:
  struct in_place {
    std::size_t request;
    std::size_t next = 0;  // token
  };

  bool one_in(std::uint64_t n) { return dice_() % n == 0; }
  // As std::shuffle, but the same everywhere.
  template <class T>
  void shuffle(T& all) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[dice_() % i]);
  }
  std::ptrdiff_t runs() const {
    return std::ranges::count_if(places_, [](const auto& one) { return one.has_value(); });
  }
  std::size_t left_of(const in_place& one) const { return texts_[one.request].size() - one.next; }

  void arrive() {
    for (auto& place : places_) {
      if (place || waiting_.empty() || (runs() != 0 && one_in(2))) continue;
      place = in_place{waiting_.back()};
      waiting_.pop_back();
    }
  }
  // Those that are at their end, and now and then one that is not.
  void leave() {
    for (auto& place : places_) {
      if (!place || (left_of(*place) != 0 && !one_in(12))) continue;
      made_.steps.back().left.push_back(place->request);
      place.reset();
    }
  }

  void add_rows(drawn_step& to, in_place& of, std::size_t count, std::size_t place) {
    to.requests.push_back({of.request, static_cast<std::int64_t>(to.tokens.size()),
                           static_cast<std::int64_t>(count), static_cast<std::int64_t>(place),
                           static_cast<std::int64_t>(of.next)});
    for (std::size_t i = 0; i < count; ++i, ++of.next) {
      to.tokens.push_back(texts_[of.request][of.next]);
      to.positions.push_back(static_cast<std::int32_t>(of.next));
      to.slots.push_back(static_cast<std::int32_t>(of.request));
    }
  }
  // Rows that touch no slot, up to this many.
  void pad(drawn_step& to, std::size_t rows) {
    while (to.tokens.size() < rows) {
      to.tokens.push_back(static_cast<std::int32_t>(dice_() % 8));
      to.positions.push_back(static_cast<std::int32_t>(dice_() % 8));
      to.slots.push_back(-1);
    }
  }

  // Some tokens of one request, alone.
  void prefill() {
    const auto some =
        std::ranges::find_if(places_, [](const auto& one) { return one.has_value(); });
    if (some == places_.end() || left_of(**some) < 2) return;
    drawn_step made;
    made.prefill = true;
    add_rows(made, **some, 1 + dice_() % (left_of(**some) - 1), 0);
    made_.steps.push_back(std::move(made));
  }

  void pack() {
    drawn_step made;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i]) order.push_back(i);
    }
    shuffle(order);
    for (const std::size_t i : order) {
      const std::size_t most = std::min<std::size_t>(left_of(*places_[i]), 4);
      add_rows(made, *places_[i], 1 + dice_() % most, i);
    }
    std::size_t rows = 4;
    while (rows < made.tokens.size()) rows *= 2;
    pad(made, rows);
    finish(std::move(made));
  }

  void batch() {
    drawn_step made;
    const std::size_t each = std::size_t{1} << dice_() % 3;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i]) {
        const std::size_t most = std::min(left_of(*places_[i]), each);
        add_rows(made, *places_[i], 1 + dice_() % most, i);
      }
      pad(made, (i + 1) * each);
    }
    finish(std::move(made));
  }

  void finish(drawn_step made) {
    shuffle(made.requests);  // named in any order
    made_.steps.push_back(std::move(made));
  }

  void count() {
    std::set<std::size_t> sizes;
    for (const drawn_step& step : made_.steps) {
      if (step.prefill) {
        ++made_.eager;
      } else if (sizes.insert(step.tokens.size()).second) {
        ++made_.captured;
      } else {
        ++made_.replayed;
      }
    }
  }

  std::mt19937_64 dice_;
  const std::vector<std::vector<std::int32_t>>& texts_;
  std::vector<std::size_t> waiting_;
  std::array<std::optional<in_place>, batch_places> places_;
  bool prefills_ = false;
  drawn_run made_;
};

}  // namespace

drawn_run draw_run(std::uint64_t seed, const std::vector<std::vector<std::int32_t>>& texts) {
  return drawing{seed, texts}.run();
}

}  // namespace reprise::test
