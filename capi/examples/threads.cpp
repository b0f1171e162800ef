// Many threads compile through one session: threads THREADS KERNEL.ttir...
// Each kernel is compiled by each thread, and all of them must make the same bytes. Then a compilation is cancelled, a
// wrong input gets a diagnostic with its place, and a layout and a conversion are shown.
#include "ttopt.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {
struct Free {
  void operator()(TtoptSession *session) const { ttoptSessionDestroy(session); }
  void operator()(TtoptResult *result) const { ttoptResultDestroy(result); }
  void operator()(TtoptCancellation *cancellation) const { ttoptCancellationDestroy(cancellation); }
  void operator()(char *text) const { ttoptTextFree(text); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

std::string read(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The PTX, or a word for what there is instead.
std::string compile(TtoptSession *session, const std::string &text, const TtoptOptions &options) {
  TtoptResult *raw = nullptr;
  TtoptStatus status = ttoptCompile(session, text.data(), text.size(), "kernel", &options, &raw);
  Owned<TtoptResult> result(raw);
  if (status != TTOPT_OK)
    return status == TTOPT_CANCELLED ? "cancelled" : "failed";
  return ttoptResultArtifact(result.get(), TTOPT_STAGE_ASM, nullptr);
}

std::string show(const char *to, TtoptLayoutFormat format) {
  const uint64_t shape[] = {32, 16};
  char *raw = nullptr;
  ttoptLayoutShow("#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
                  to, shape, 2, "f16", nullptr, format, &raw);
  Owned<char> text(raw);
  return text.get();
}
} // namespace

int main(int argc, char **argv) {
  if (argc < 3)
    return std::fprintf(stderr, "usage: threads THREADS KERNEL.ttir...\n"), EXIT_FAILURE;
  std::vector<std::string> kernels;
  for (int i = 2; i < argc; ++i)
    kernels.push_back(read(argv[i]));
  Owned<TtoptSession> session(ttoptSessionCreate());
  TtoptOptions options = TTOPT_OPTIONS_INIT;
  options.target = "cuda:90";

  std::vector<std::string> alone;
  for (const std::string &kernel : kernels)
    alone.push_back(compile(session.get(), kernel, options));
  std::vector<int> same(std::atoi(argv[1]));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      for (size_t k = 0; k < kernels.size(); ++k) {
        size_t at = (k + t) % kernels.size();
        same[t] += compile(session.get(), kernels[at], options) == alone[at];
      }
    });
  size_t total = 0;
  for (size_t t = 0; t < threads.size(); ++t) {
    threads[t].join();
    total += same[t];
  }
  std::printf("%zu of %zu compilations made the same bytes as alone\n", total, same.size() * kernels.size());

  Owned<TtoptCancellation> cancellation(ttoptCancellationCreate());
  ttoptCancel(cancellation.get());
  TtoptOptions stopped = options;
  stopped.cancellation = cancellation.get();
  std::printf("stopped: %s\n", compile(session.get(), kernels[0], stopped).c_str());

  TtoptOptions heard = options;
  heard.diagnostic = [](const TtoptDiagnostic *said, void *) {
    std::printf("%s:%u:%u: %s\n", said->file, said->line, said->column, said->message);
    for (size_t i = 0; i < said->num_notes; ++i)
      std::printf("note: %s\n", said->notes[i].message);
  };
  std::printf("wrong: %s\n", compile(session.get(), "tt.func @k() {\n  %0 = no.such : i32\n}", heard).c_str());

  std::printf("layout: %s\n", show(nullptr, TTOPT_LAYOUT_JSON).c_str());
  const char *to = "#ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>";
  std::printf("plan: %s\n", show(to, TTOPT_LAYOUT_JSON).c_str());
  std::printf("picture: %.4s\n", show(nullptr, TTOPT_LAYOUT_SVG).c_str());
  return total == same.size() * kernels.size() ? EXIT_SUCCESS : EXIT_FAILURE;
}
