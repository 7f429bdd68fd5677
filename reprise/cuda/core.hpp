// What all parts of one CUDA device share. For this room's .cpp files.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/cuda/blocks.hpp"
#include "reprise/cuda/capture.hpp"
#include "reprise/cuda/check.hpp"
#include "reprise/cuda/fill.hpp"
#include "reprise/cuda/foreign.hpp"
#include "reprise/cuda/records.hpp"
#include "reprise/cuda/thread_state.hpp"

namespace reprise::cuda {

struct core {
  core(int card_ordinal, std::string name) : ordinal{card_ordinal}, card{std::move(name)} {}

  call_place at(std::string_view call, std::source_location from) const {
    return {call, card.device(), from};
  }

  // First line of a call that acts on the current device.
  void enter(std::string_view call, std::source_location from) {
    card.require(call, from);
    card.check(make_current(ordinal), call, from);
  }

  const int ordinal;
  health card;
  fill_functions fills;
  block_table blocks;
  foreign_graphs foreign;
  capture_registry captures;
};

// What an id stands for. Throws for `none`, which a moved-from owner holds.
template <class Record, class Id>
Record& record_of(Id id, const core& shared, std::string_view call, std::source_location from) {
  if (id == Id::none) [[unlikely]] {
    throw device_error{shared.at(call, from), "the handle is none: its owner was moved from"};
  }
  return *reinterpret_cast<Record*>(static_cast<std::uintptr_t>(id));
}

template <class Id, class Record>
Id id_of(Record& record) {
  return Id{reinterpret_cast<std::uintptr_t>(&record)};
}

// The capture that the stream is in; null: none. A stream that somebody else owns may be in a
// capture that he began: CUDA is asked, and what is enqueued through Reprise is kept beside it.
capture_state* capture_of(core& shared, stream_record& stream);

// The door behind device_api::submit: enqueues, or adds to the capture that the stream is in.
node_id submit_work(core& shared, stream_record& stream, const work& what);

}  // namespace reprise::cuda
