#include "workloads/train/model.hpp"

#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/linear.hpp"

namespace reprise::train {

namespace {

nn::linear linear_of(nn::parameter_set& set, const std::string& name) {
  return nn::linear{set.at(name + ".weight"), set.at(name + ".bias"), name};
}

nn::batch_norm norm_of(nn::parameter_set& set, const std::string& name,
                       const nn::running_stats& statistics) {
  return nn::batch_norm{set.at(name + ".gain"), set.at(name + ".bias"), statistics, {}, name};
}

}  // namespace

nn::parameter_specs model_parameters(const train_options& o) {
  return nn::joined({nn::linear_parameters("trunk.first", o.hidden, image_pixels),
                     nn::norm_parameters("trunk.first_norm", o.hidden),
                     nn::linear_parameters("trunk.second", o.width, o.hidden),
                     nn::norm_parameters("trunk.second_norm", o.width),
                     nn::linear_parameters("class.out", classes, o.width),
                     nn::linear_parameters("mask.up", o.mask_hidden, o.width),
                     nn::linear_parameters("mask.out", image_pixels, o.mask_hidden)});
}

norm_statistics make_statistics(pool& memory, const train_options& o, stream_ref stream) {
  return {nn::running_stats{memory, o.hidden, stream}, nn::running_stats{memory, o.width, stream}};
}

nn::sequence make_trunk(nn::parameter_set& set, const norm_statistics& statistics,
                        philox_counter& draws, const train_options& o) {
  nn::sequence trunk{"trunk"};
  trunk.add(linear_of(set, "trunk.first"))
      .add(norm_of(set, "trunk.first_norm", statistics.first))
      .add(nn::gelu{"trunk.first_gelu"})
      .add(nn::dropout{o.dropout, draws, "trunk.dropout"})
      .add(linear_of(set, "trunk.second"))
      .add(norm_of(set, "trunk.second_norm", statistics.second))
      .add(nn::gelu{"trunk.second_gelu"});
  return trunk;
}

std::vector<head_group> make_groups(nn::parameter_set& set) {
  nn::sequence of_class{"class"};
  of_class.add(linear_of(set, "class.out"));
  nn::sequence of_mask{"mask"};
  of_mask.add(linear_of(set, "mask.up")).add(nn::gelu{"mask.gelu"}).add(linear_of(set, "mask.out"));
  return {{group_names[class_group], of_class}, {group_names[mask_group], of_mask}};
}

std::vector<loss_term> make_terms(const train_options& o) {
  return {{group_names[class_group], loss_of(nn::softmax_cross_entropy{}), 1},
          {group_names[mask_group], loss_of(nn::binary_cross_entropy{}), o.mask_weight}};
}

}  // namespace reprise::train
