// Streams, graphs and executables that plain CUDA made, behind declarations without CUDA types.
// Every function throws std::runtime_error with CUDA's text when CUDA refuses.
#pragma once

#include <cstddef>

#include "reprise/device/graph.hpp"

namespace reprise::test::foreign {

void* make_stream();
void destroy_stream(void* stream);
void synchronize(void* stream);

void begin_capture(void* stream);
void* end_capture(void* stream);  // a graph
void* instantiate(void* graph);   // an executable
void launch(void* executable, void* stream);
void destroy_graph(void* graph);
void destroy_executable(void* executable);

// Their own work: data[i] += by.
void add(void* stream, float* data, std::size_t count, float by);
// A graph of one node that Reprise does not record: another graph.
void* graph_with_a_child();

stream_ref borrow_stream(device_ref device, void* stream);
stream_ref borrow_default_stream(device_ref device);
graph_ref borrow_graph(device_ref device, void* graph);
executable_ref borrow_executable(device_ref device, void* executable);

}  // namespace reprise::test::foreign
