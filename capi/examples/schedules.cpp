// Draws the schedules of a kernel's loops, then compiles TTGIR that was edited: schedules KERNEL.ttir OUT.svg
#include "ttopt.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace {
struct Free {
  void operator()(TtoptSession *session) const { ttoptSessionDestroy(session); }
  void operator()(TtoptResult *result) const { ttoptResultDestroy(result); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

Owned<TtoptResult> compile(TtoptSession *session, const std::string &text, const TtoptOptions &options) {
  TtoptResult *result = nullptr;
  ttoptCompile(session, text.data(), text.size(), "kernel.ttir", &options, &result);
  return Owned<TtoptResult>(result);
}
} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return std::fprintf(stderr, "usage: schedules KERNEL.ttir OUT.svg\n"), EXIT_FAILURE;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string kernel{std::istreambuf_iterator<char>(file), {}};
  Owned<TtoptSession> session(ttoptSessionCreate());
  TtoptOptions options = TTOPT_OPTIONS_INIT;
  options.target = "cuda:90";
  options.flags = TTOPT_SCHEDULES;
  options.stop_after = TTOPT_STAGE_TTGIR;
  options.diagnostic = [](const TtoptDiagnostic *said, void *) { std::printf("%s\n", said->message); };
  Owned<TtoptResult> layouts = compile(session.get(), kernel, options);
  if (!layouts)
    return EXIT_FAILURE;
  std::ofstream(argv[2]) << ttoptResultSchedules(layouts.get(), TTOPT_SCHEDULE_SVG);

  // The edit is an attribute, which shows in the TTGIR that the PTX is made of.
  std::string ttgir = ttoptResultArtifact(layouts.get(), TTOPT_STAGE_TTGIR, nullptr);
  ttgir.replace(ttgir.find("module attributes {"), 19, "module attributes {ttg.edited = true, ");
  TtoptOverride edited = TTOPT_OVERRIDE_INIT;
  edited.stage = TTOPT_STAGE_TTGIR;
  edited.name = "edited.ttgir";
  edited.bytes = ttgir.data();
  edited.length = ttgir.size();
  options.overrides = &edited;
  options.num_overrides = 1;
  options.stop_after = TTOPT_STAGE_ASM;
  Owned<TtoptResult> made = compile(session.get(), kernel, options);
  if (!made)
    return EXIT_FAILURE;
  const std::string used = ttoptResultArtifact(made.get(), TTOPT_STAGE_TTGIR, nullptr);
  std::printf("edited TTGIR: %s\n", used.find("ttg.edited = true") == std::string::npos ? "not used" : "used");
  std::printf("schedules of what was not scheduled: %s\n",
              ttoptResultSchedules(made.get(), TTOPT_SCHEDULE_JSON) ? "some" : "none");
  std::printf("kernel: %s\n", ttoptResultKernelName(made.get()));
  return EXIT_SUCCESS;
}
