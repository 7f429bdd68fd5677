#include "reprise/ops/flow.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_guide(std::size_t with, std::size_t without, std::size_t scale, std::size_t out) {
  need_elements("guide", "without", without, with);
  need_elements("guide", "scale", scale, 1);
  need_elements("guide", "out", out, with);
}

void check_flow_drift(std::size_t data, std::size_t x, std::size_t factors, std::size_t out) {
  need_elements("flow_drift", "x", x, data);
  need_elements("flow_drift", "factors", factors, 2);
  need_elements("flow_drift", "out", out, data);
}

void check_euler_step(std::size_t x, std::size_t drift, std::size_t dt) {
  need_elements("euler_step", "drift", drift, x);
  need_elements("euler_step", "dt", dt, 1);
}

void check_sde_step(std::size_t x, std::size_t drift, std::size_t noise, std::size_t dt,
                    std::size_t sigma) {
  need_elements("sde_step", "drift", drift, x);
  need_elements("sde_step", "noise", noise, x);
  need_elements("sde_step", "dt", dt, 1);
  need_elements("sde_step", "sigma", sigma, 1);
}

void guide_cpu(cpu_call& call, read<float> with, read<float> without, read<float> scale,
               write<float> out) {
  check_guide(with.size(), without.size(), scale.size(), out.size());
  const float s = scale[0];
  each_element(call, with.size(), [&](std::int64_t i) {
    out.data()[i] = guided(with.data()[i], without.data()[i], s);
  });
}

void flow_drift_cpu(cpu_call& call, read<float> data, read<float> x, read<float> factors,
                    write<float> out) {
  check_flow_drift(data.size(), x.size(), factors.size(), out.size());
  const float of_data = factors[0];
  const float of_x = factors[1];
  each_element(call, data.size(), [&](std::int64_t i) {
    out.data()[i] = drift_of(data.data()[i], x.data()[i], of_data, of_x);
  });
}

void euler_step_cpu(cpu_call& call, inout<float> x, read<float> drift, read<float> dt) {
  check_euler_step(x.size(), drift.size(), dt.size());
  const float by = dt[0];
  each_element(call, x.size(),
               [&](std::int64_t i) { x.data()[i] = along(x.data()[i], drift.data()[i], by); });
}

void sde_step_cpu(cpu_call& call, inout<float> x, read<float> drift, read<float> noise,
                  read<float> dt, read<float> sigma) {
  check_sde_step(x.size(), drift.size(), noise.size(), dt.size(), sigma.size());
  const float by = dt[0];
  const float deviation = sigma[0];
  each_element(call, x.size(), [&](std::int64_t i) {
    x.data()[i] = shaken(x.data()[i], drift.data()[i], noise.data()[i], by, deviation);
  });
}

}  // namespace ops

void add_flow(kernel_registry& registry) {
  registry.add(guide, {{device_kind::cpu, "generic", ops::guide_cpu},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::guide_cuda)}});
  registry.add(flow_drift, {{device_kind::cpu, "generic", ops::flow_drift_cpu},
                            {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::flow_drift_cuda)}});
  registry.add(euler_step, {{device_kind::cpu, "generic", ops::euler_step_cpu},
                            {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::euler_step_cuda)}});
  registry.add(sde_step, {{device_kind::cpu, "generic", ops::sde_step_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::sde_step_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
