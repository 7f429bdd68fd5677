// Components: things with weights that several loops share, such as an encoder or a decoder.
//
// A component is asked for by kind, devices and variant. The store walks over the devices in the
// caller's order; on each, the cell of the variant, then the default one, the first that is
// available; where no device has one, the factory of the component's owner. Each is built once: the
// same key gives the same object, with the version of its weights.
//
// A registry is a value, filled once, then const. A store is used by one thread at a time, and its
// devices outlive it. A component may ask the store for others while it is built, never for itself.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// The name of a kind of component and the type that its objects have; the type is part of it.
template <class T>
class component_kind {
 public:
  consteval explicit component_kind(const char* name) : name_{name} {}
  constexpr const char* name() const { return name_; }

 private:
  const char* name_;
};

// A component as its users hold it. Whoever changes its weights bumps the version, and says
// `signature::fact("weights", shared->version)` in steps that read them.
template <class T>
struct component {
  std::unique_ptr<T> object;
  version_counter version;
  std::string device;   // "cuda:0"
  std::string variant;  // of the cell that built it; as asked for where its owner's factory did
  std::string source;

  T& operator*() const { return *object; }
  T* operator->() const { return object.get(); }
};

template <class T>
using component_factory = std::function<std::unique_ptr<T>(device_ref)>;

template <class T>
struct component_cell {
  device_kind device;
  component_factory<T> build;  // empty: this build has it not
  const char* variant = "default";
  bool (*available)(const device_traits&) = nullptr;  // one that throws says no
  const char* source = nullptr;                       // null: the file that adds it
  bool replace = false;
};

// A cell with its type erased; what lists show.
struct component_row {
  std::string kind;
  std::type_index type = typeid(void);
  device_kind device = device_kind::cpu;
  std::string variant;
  bool built = false;
  bool replaces = false;
  bool (*available)(const device_traits&) = nullptr;
  std::string source;
  std::function<std::shared_ptr<void>(device_ref)> build;  // a component<T>
};

// Why a cell builds nothing for a device, in words; empty where it does.
std::string why_not(const component_row& cell, const device_traits& device);

class component_registry {
 public:
  // Throws usage_error when a cell is there already and the new one does not say `replace`; then
  // none was added.
  template <class T>
  void add(component_kind<T> kind, std::initializer_list<component_cell<T>> cells,
           std::source_location from = std::source_location::current()) {
    std::vector<component_row> fresh;
    for (const component_cell<T>& c : cells) {
      component_row& row = fresh.emplace_back();
      row.kind = kind.name();
      row.type = typeid(T);
      row.device = c.device;
      row.variant = c.variant;
      row.built = static_cast<bool>(c.build);
      row.replaces = c.replace;
      row.available = c.available;
      if (c.source != nullptr) row.source = c.source;
      row.build = erased<T>(c.build);
    }
    add_rows(std::move(fresh), from);
  }

  std::span<const component_row> rows() const { return rows_; }

  template <class T>
  static std::function<std::shared_ptr<void>(device_ref)> erased(component_factory<T> build) {
    if (!build) return {};
    return [build = std::move(build)](device_ref on) -> std::shared_ptr<void> {
      auto made = std::make_shared<component<T>>();
      made->object = build(on);
      return made->object == nullptr ? nullptr : made;
    };
  }

 private:
  void add_rows(std::vector<component_row> fresh, std::source_location from);

  std::vector<component_row> rows_;
};

// Every component that Reprise brings; workloads add their own.
component_registry builtin_components();

class component_store {
 public:
  explicit component_store(component_registry registry) : registry_{std::move(registry)} {}

  // Throws usage_error, naming the kind and what cells there are, when nothing can build it; what a
  // builder throws arrives unchanged, and nothing is kept of it. The store keeps what it built.
  template <class T>
  std::shared_ptr<component<T>> get(component_kind<T> kind, std::span<const device_ref> devices,
                                    std::string_view variant = "default",
                                    component_factory<T> owners = {}) {
    const found here = find(kind.name(), typeid(T), devices, variant,
                            component_registry::erased<T>(std::move(owners)));
    auto shared = std::static_pointer_cast<component<T>>(here.object);
    if (here.fresh) {
      shared->device = here.on->name();
      shared->variant = here.variant;
      shared->source = here.source;
    }
    return shared;
  }
  template <class T>
  std::shared_ptr<component<T>> get(component_kind<T> kind, device_ref device,
                                    std::string_view variant = "default",
                                    component_factory<T> owners = {}) {
    return get(kind, std::span<const device_ref>{&device, 1}, variant, std::move(owners));
  }

 private:
  // Kind, type, device, variant, and whether its owner's factory built it.
  using key = std::tuple<std::string, std::type_index, const device_state*, std::string, bool>;
  using builder = std::function<std::shared_ptr<void>(device_ref)>;
  struct found {
    std::shared_ptr<void> object;
    bool fresh = false;
    const device_ref* on = nullptr;
    std::string variant;
    std::string source;
    bool by_owner = false;
  };

  found find(std::string_view kind, std::type_index type, std::span<const device_ref> devices,
             std::string_view variant, const builder& owners);
  found built(found here, std::string_view kind, std::type_index type, const builder& build);

  component_registry registry_;
  std::map<key, std::shared_ptr<void>> objects_;
};

}  // namespace reprise
