// The GPU gate's bookkeeper: judges what scripts/gate.sh saw, and takes its record into docs/.
//
//   gate_summary judge RESULTS GOLDEN GPU_JSON     exit 1 when not green
//   gate_summary accept GPU_JSON HASH DOCS         exit 2, nothing written, when refused
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/gate/summary.hpp"

namespace {

namespace fs = std::filesystem;
namespace gate = reprise::gate;

void write(const fs::path& file, const std::string& text) {
  std::ofstream out{file};
  out << text;
  if (!out.flush()) throw std::runtime_error{file.string() + " cannot be written"};
}

int judge(const fs::path& results, const fs::path& golden, const fs::path& to) {
  const auto record = gate::summarise(results, gate::read_json(golden));
  write(to, record.dump(1) + "\n");
  std::cout << gate::page(record);
  return record.at("green") == true ? 0 : 1;
}

int accept(const fs::path& from, const std::string& device_code, const fs::path& docs) {
  const auto record = gate::read_json(from);
  if (const auto why = gate::refusal(record, device_code); !why.empty()) {
    throw std::runtime_error{from.string() + " is refused: " + why};
  }
  write(docs / "gpu.json", record.dump(1) + "\n");
  write(docs / "gpu.md", gate::page(record));
  return 0;
}

}  // namespace

int main(int count, char** values) try {
  const std::vector<std::string> arguments{values + 1, values + count};
  if (arguments.size() == 4 && arguments[0] == "judge") {
    return judge(arguments[1], arguments[2], arguments[3]);
  }
  if (arguments.size() == 4 && arguments[0] == "accept") {
    return accept(arguments[1], arguments[2], arguments[3]);
  }
  throw std::runtime_error{"judge RESULTS GOLDEN GPU_JSON, or accept GPU_JSON HASH DOCS"};
} catch (const std::exception& wrong) {
  std::cerr << "gate_summary: " << wrong.what() << '\n';
  return 2;
}
