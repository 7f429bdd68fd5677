// Works that Reprise enqueued into captures which somebody else began: their nodes, and what they
// own on the host, kept until CUDA says that his graph and every executable of it is gone. For this
// room's .cpp files.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "reprise/cuda/graph_body.hpp"

namespace reprise::cuda {

struct core;

// Thread safe.
class foreign_graphs {
 public:
  // A body for the graph that is being captured, which then holds it: CUDA tells when it dies.
  // Throws device_error or out_of_memory.
  std::shared_ptr<graph_body> add(core& shared, cudaGraph_t captured);

  // The body of this graph, if works of ours are in it; else one that knows only the graph. A
  // handle may have been used again for another graph: nodes that are not in it are no works of it.
  std::shared_ptr<graph_body> body_of(core& shared, cudaGraph_t graph);

  // The body that has this work; null: none.
  std::shared_ptr<const graph_body> find(node_id node);

  // Bodies whose graphs are gone, for the caller to drop where no lock is held: what they own may
  // call the device.
  std::vector<std::shared_ptr<graph_body>> take_gone();
  // Kept until then, by whoever may not drop one.
  void put_aside(std::shared_ptr<graph_body> body);
  // The device closes. Bodies whose graphs still exist are left to the process, and counted.
  std::size_t leave_the_rest();

  std::mutex finding;  // one thread at a time asks CUDA about captures of others

 private:
  struct entry {
    std::shared_ptr<graph_body> body;
    std::shared_ptr<std::atomic<bool>> gone;  // set by CUDA, on a thread of its own
  };
  std::mutex guard_;
  std::multimap<cudaGraph_t, entry> all_;
  std::vector<std::shared_ptr<graph_body>> aside_;
};

}  // namespace reprise::cuda
