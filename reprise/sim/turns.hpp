// The host threads of one adversarial device, of which one runs at a time.
//
// A thread has the turn until it gives it to another, inside a call of the seam; so the seed alone
// says who runs when. Threads that the operating system runs beside these are not known here, and
// calls of theirs are a fault.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "reprise/sim/dice.hpp"

namespace reprise::sim {

class turns {
 public:
  // The calling thread is the first, and has the turn. `prepare` is called by each thread that is
  // started, with the turn, before its body; `clean` when its body is done.
  turns(std::function<void()> prepare, std::function<void()> clean);
  ~turns();
  turns(const turns&) = delete;
  turns& operator=(const turns&) = delete;

  // Of the calling thread, from 1; 0: not known here.
  std::uint64_t number() const;
  std::size_t count() const { return hosts_.size(); }  // that have not ended

  std::uint64_t start(std::function<void()> body);
  bool ended(std::uint64_t number) const;

  // What the calling thread waits for while others have the turn; null: nothing, it can go on.
  void waits_for(const std::function<bool()>* condition);
  // Gives the turn to another that can go on, as the dice say. False: there is none.
  bool hand_over(dice& choice);
  // Likewise; where none can go on, to one that looks what is to be done.
  void hand_on(dice& choice);

 private:
  struct host {
    std::uint64_t number = 0;
    const std::function<bool()>* waits_for = nullptr;
    std::condition_variable wake;
    std::thread thread;
  };
  using hosts = std::vector<std::unique_ptr<host>>;

  static bool can_go(const host& other);
  host* self() const;
  void give_to(host& other, std::unique_lock<std::mutex>& lock);
  void run(host& me, const std::function<void()>& body);

  const std::uint64_t serial_;
  const std::function<void()> prepare_;
  const std::function<void()> clean_;
  mutable std::mutex guard_;  // of who has the turn; the rest is of the thread that has it
  host* has_turn_;
  hosts hosts_;  // by number
  std::vector<std::thread> ended_;
  std::uint64_t last_ = 0;
};

}  // namespace reprise::sim
