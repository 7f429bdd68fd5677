#include "apps/reprise/verb.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace reprise::app {

option_ref option_ref::option_text(const char* text) const {
  of_->option_text(text);
  return *this;
}

option_ref option_ref::check(std::string (*wrong)(const std::string&)) const {
  of_->check(wrong);
  return *this;
}

option_ref option_ref::range(std::int64_t least, std::int64_t most) const {
  of_->check(CLI::Range(least, most));
  return *this;
}

option_ref option_ref::delimiter(char between) const {
  of_->delimiter(between);
  return *this;
}

option_ref option_ref::one_at_a_time() const {
  of_->allow_extra_args(false);
  return *this;
}

option_ref option_ref::alone_means(const char* value) const {
  of_->expected(0, 1)->default_str(value);
  return *this;
}

option_ref option_ref::required() const {
  of_->required();
  return *this;
}

option_ref option_ref::excludes(option_ref other) const {
  of_->excludes(other.of_);
  return *this;
}

verb_ref verb_ref::add_subcommand(const char* name, const char* what) const {
  return *of_->add_subcommand(name, what);
}

void verb_ref::footer(const char* text) const {
  of_->footer(text);
}

void verb_ref::require_subcommand(int count) const {
  of_->require_subcommand(count);
}

void verb_ref::callback(std::function<void()> run) const {
  of_->callback(std::move(run));
}

bool verb_ref::has_subcommand() const {
  return !of_->get_subcommands().empty();
}

std::string verb_ref::given_option() const {
  for (const CLI::Option* option : of_->get_options()) {
    if (option->count() != 0) return option->get_name();
  }
  return {};
}

option_ref verb_ref::add_flag(const char* name, bool& into, const std::string& what) const {
  return option_ref{of_->add_flag(name, into, what)};
}

template <class Value>
option_ref verb_ref::add_option(const char* name, Value& into, const std::string& what) const {
  return option_ref{of_->add_option(name, into, what)};
}

// What options are read into.
template option_ref verb_ref::add_option(const char*, int&, const std::string&) const;
template option_ref verb_ref::add_option(const char*, float&, const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::int64_t&, const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::uint64_t&, const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::string&, const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::filesystem::path&,
                                         const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::optional<float>&,
                                         const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::optional<std::int64_t>&,
                                         const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::optional<std::string>&,
                                         const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::vector<int>&, const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::vector<std::int64_t>&,
                                         const std::string&) const;
template option_ref verb_ref::add_option(const char*, std::vector<std::string>&,
                                         const std::string&) const;

}  // namespace reprise::app
