#include "workloads/denoise/denoiser_config.hpp"

#include "tests/denoise/support.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

std::string refused(const test::small_model& model) {
  try {
    denoise::read_denoiser_config(model.folder() / "config.json");
  } catch (const usage_error& wrong) {
    return wrong.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(denoiser_config, is_read_as_it_is_written) {
  const auto config = denoise::read_denoiser_config(test::shipped_denoiser() / "config.json");
  EXPECT_EQ(config.pixels(), 784);
  EXPECT_EQ(config.classes(), 10);
  EXPECT_EQ(config.null_class(), 10);
  EXPECT_EQ(config.class_names[9], "ankle boot");
  EXPECT_EQ(config.blocks, 4);
  EXPECT_EQ(config.norm_epsilon, 1e-5F);
}

TEST(denoiser_config, each_field_is_needed_and_checked) {
  const test::small_model model;
  const nlohmann::json good = test::small_config();
  for (const auto& [name, value] : good.items()) {
    for (const nlohmann::json& wrong :
         {nlohmann::json{}, nlohmann::json(-1), nlohmann::json("x"), nlohmann::json(1e30)}) {
      nlohmann::json config = good;
      if (wrong.is_null()) {
        config.erase(name);
      } else {
        config[name] = wrong;
      }
      model.write_config(config);
      EXPECT_NE(refused(model).find("'" + name + "'"), std::string::npos) << name << " " << wrong;
    }
  }
}

TEST(denoiser_config, what_is_no_configuration_is_refused) {
  const test::small_model model;
  nlohmann::json odd = test::small_config();
  odd["time_width"] = 7;
  model.write_config(odd);
  EXPECT_NE(refused(model).find("time_width"), std::string::npos);
  for (const char* text : {"", "[]", "{", "3"}) {
    std::ofstream{model.folder() / "config.json"} << text;
    EXPECT_NE(refused(model).find("not a JSON object"), std::string::npos) << text;
  }
  std::filesystem::remove(model.folder() / "config.json");
  EXPECT_NE(refused(model).find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace reprise
