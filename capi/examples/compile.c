/* Compiles a file of TTIR to PTX: compile KERNEL.ttir */
#include "ttopt.h"
#include <stdio.h>
#include <stdlib.h>

static void complain(const TtoptDiagnostic *diagnostic, void *user_data) {
  (void)user_data;
  fprintf(stderr, "%s:%u:%u: %s\n", diagnostic->file, diagnostic->line, diagnostic->column, diagnostic->message);
}

int main(int argc, char **argv) {
  static char text[1 << 20];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file)
    return fprintf(stderr, "usage: compile KERNEL.ttir\n"), EXIT_FAILURE;
  size_t length = fread(text, 1, sizeof(text), file);
  fclose(file);

  TtoptSession *session = ttoptSessionCreate();
  TtoptOptions options = TTOPT_OPTIONS_INIT;
  options.target = "cuda:90";
  options.diagnostic = complain;
  TtoptResult *result = NULL;
  TtoptStatus status = ttoptCompile(session, text, length, argv[1], &options, &result);
  if (status == TTOPT_OK) {
    fputs(ttoptResultArtifact(result, TTOPT_STAGE_ASM, NULL), stdout);
    printf("// %s uses %d bytes of shared memory\n", ttoptResultKernelName(result),
           (int)ttoptResultNumber(result, TTOPT_SHARED_BYTES));
  }
  ttoptResultDestroy(result);
  ttoptSessionDestroy(session);
  return status;
}
