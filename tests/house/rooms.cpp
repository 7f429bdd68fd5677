#include "tests/house/rooms.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace reprise::house {
namespace {

struct arrows {
  std::string_view from;
  std::vector<std::string_view> to;
};

// The house as docs/architecture.md draws it, top to bottom. A path of arrows is a permission.
const std::vector<arrows>& house() {
  static const std::vector<arrows> table{
      {"platform", {"sim", "cuda", "trace", "ops", "sdm", "nn", "grad", "replay", "tap"}},
      {"tap", {"replay", "toggle", "records"}},
      {"records", {"formats", "telemetry"}},
      {"train", {"nn"}},
      {"sdm", {"nn"}},
      {"nn", {"grad", "ops"}},
      {"grad", {"replay", "ops"}},
      {"loop", {"replay"}},
      {"replay", {"kernel"}},
      {"toggle", {"device"}},
      {"trace", {"device"}},
      {"ops", {"kernel"}},
      {"kernel", {"device"}},
      {"sim", {"device"}},
      {"cuda", {"device"}},
      {"device", {"telemetry"}},
      {"telemetry", {"base"}},
      {"formats", {"base"}},
      {"base", {}},
  };
  return table;
}

const arrows* find(std::string_view room) {
  const auto found = std::ranges::find(house(), room, &arrows::from);
  return found == house().end() ? nullptr : &*found;
}

bool implements_a_device(std::string_view room) {
  return room == "sim" || room == "cuda";
}

// The command, the benches, the scenarios and the workloads stand above the house, in this order;
// examples stand beside them, since they show what the library alone can do.
constexpr std::string_view examples = "examples";
constexpr std::array<std::string_view, 5> guests{"apps", "bench", "scenarios", "workloads",
                                                 examples};

bool is_guest(std::string_view room) {
  return std::ranges::find(guests, room) != guests.end();
}

bool is_cuda_file(const source_file& file) {
  return file.ends_with(".cu") || file.ends_with(".cuh");
}

bool is_cuda_header(std::string_view path) {
  constexpr std::array<std::string_view, 17> beginnings{"cuda.h",
                                                        "cuda_",
                                                        "cuda/",
                                                        "cub/",
                                                        "thrust/",
                                                        "cublas",
                                                        "cudnn",
                                                        "curand",
                                                        "nvrtc",
                                                        "nvml",
                                                        "nccl",
                                                        "nvtx3/",
                                                        "driver_types.",
                                                        "vector_types.",
                                                        "mma.h",
                                                        "device_launch_",
                                                        "cooperative_groups"};
  return std::ranges::any_of(beginnings, [&](auto begin) { return path.starts_with(begin); });
}

std::string own_rooms(const source_file& file, const include& what) {
  const auto from = room_of(file.name);
  const auto to = room_of(what.path);
  if (to.empty()) return "a quoted include is a path from the root: reprise/room/file";
  if (!is_room(to)) return "the house has no room '" + std::string{to} + "'";
  if (is_cuda_file(file) && what.path == "reprise/cuda/call.cuh") return {};
  if (may_use(from, to)) return {};
  return "no path of arrows leads from " + std::string{from} + " to " + std::string{to};
}

std::string outsiders(const source_file& file, const include& what) {
  if (is_cuda_header(what.path) && !is_cuda_file(file) && room_of(file.name) != "cuda") {
    return "only reprise/cuda/ and .cu files include CUDA headers";
  }
  if (what.path.starts_with("fmt/") && !file.ends_with(".cpp")) return "fmt is for .cpp files";
  if (what.path.starts_with("toml++/") && !file.ends_with(".cpp"))
    return "toml++ is for .cpp files";
  if (what.path.starts_with("nlohmann/") && is_cuda_file(file)) return "a .cu file reads no JSON";
  return {};
}

}  // namespace

std::string_view room_of(std::string_view path) {
  const auto slash = path.find('/');
  if (slash == std::string_view::npos) return {};
  const auto top = path.substr(0, slash);
  if (is_guest(top)) return top;
  if (top != "reprise") return {};
  const auto rest = path.substr(slash + 1);
  return rest.substr(0, rest.find('/'));
}

bool is_room(std::string_view name) {
  return is_guest(name) || find(name) != nullptr;
}

bool may_use(std::string_view from, std::string_view to) {
  if (from == to) return true;
  if (is_guest(to)) {
    if (from == examples || to == examples) return false;
    const auto above = std::ranges::find(guests, from);
    return above != guests.end() && above < std::ranges::find(guests, to);
  }
  if (is_guest(from)) return find(to) != nullptr && !implements_a_device(to);
  const auto* room = find(from);
  return room != nullptr &&
         std::ranges::any_of(room->to, [&](auto next) { return may_use(next, to); });
}

faults include_faults(const source_file& file) {
  faults found;
  for (const auto& what : includes_of(file.text)) {
    const auto wrong = what.quoted || what.path.starts_with("reprise/") ? own_rooms(file, what)
                                                                        : outsiders(file, what);
    if (!wrong.empty()) found.push_back(fault(file, what.line, what.path + ": " + wrong));
  }
  // An include is not the only way to know one; `cuda::` in a .cu file is NVIDIA's own library.
  const auto room = room_of(file.name);
  if (implements_a_device(room) || room == "platform" || is_cuda_file(file)) return found;
  const auto code = code_alone(file.text);
  for (const std::string_view name : {"sim::", "cuda::"}) {
    if (const int line = line_of_word(code, name); line > 0) {
      found.push_back(
          fault(file, line, "only sim, cuda and platform name a device's implementation"));
    }
  }
  return found;
}

}  // namespace reprise::house
