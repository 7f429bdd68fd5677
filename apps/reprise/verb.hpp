// The verbs of the command line and their options: handles on what CLI11 has, in its own words.
//
// CLI11 is all headers, and takes longer to compile than what a command does: verb.cpp and main.cpp
// alone see it. A handle is copied freely, and is good as long as the root of the verbs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace reprise::app {

class option_ref {
 public:
  explicit option_ref(CLI::Option* of) : of_{of} {}

  // What help shows in place of the value: "N", "FILE".
  option_ref option_text(const char* text) const;
  // What is wrong with a value; empty where nothing is. whole_number.hpp has some.
  option_ref check(std::string (*wrong)(const std::string&)) const;
  // Both ends are in it.
  option_ref range(std::int64_t least, std::int64_t most) const;
  // Between the values of a list.
  option_ref delimiter(char between) const;
  // A list that takes one value each time it is given, so that what follows is no value.
  option_ref one_at_a_time() const;
  // It may stand without a value, and then has this one.
  option_ref alone_means(const char* value) const;
  option_ref required() const;
  option_ref excludes(option_ref other) const;

 private:
  CLI::Option* of_;
};

class verb_ref {
 public:
  // Implicit: the root is CLI11's own.
  verb_ref(CLI::App& of) : of_{&of} {}

  verb_ref add_subcommand(const char* name, const char* what) const;
  // What stands below the options in its help.
  void footer(const char* text) const;
  void require_subcommand(int count) const;
  // Runs when the verb was given and all of the line was understood. One below it runs before it.
  void callback(std::function<void()> run) const;

  // When it runs: whether a verb below it was given, and the first of its own options that was;
  // empty: none was.
  bool has_subcommand() const;
  std::string given_option() const;

  option_ref add_flag(const char* name, bool& into, const std::string& what) const;
  // Value: one of those at the end of verb.cpp. `into` lives as long as the verb.
  template <class Value>
  option_ref add_option(const char* name, Value& into, const std::string& what) const;

 private:
  CLI::App* of_;
};

}  // namespace reprise::app
