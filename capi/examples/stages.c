/* Compiles a kernel, edits its PTX, and has the compiler take that in the place of its own: stages KERNEL.ttir */
#include "ttopt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void complain(const TtoptDiagnostic *diagnostic, void *user_data) {
  (void)user_data;
  printf("%s: %s\n", diagnostic->file, diagnostic->message);
}

/* The text with a line before it. */
static char *edited(const char *line, const char *text) {
  char *both = malloc(strlen(line) + strlen(text) + 1);
  if (!both)
    abort();
  return strcat(strcpy(both, line), text);
}

int main(int argc, char **argv) {
  static char input[1 << 20];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file)
    return fprintf(stderr, "usage: stages KERNEL.ttir\n"), EXIT_FAILURE;
  size_t length = fread(input, 1, sizeof(input), file);
  fclose(file);

  TtoptSession *session = ttoptSessionCreate();
  TtoptOptions options = TTOPT_OPTIONS_INIT;
  options.target = "cuda:90";
  options.diagnostic = complain;
  options.flags = TTOPT_SCHEDULES;
  TtoptResult *first = NULL, *second = NULL, *third = NULL;
  TtoptStatus status = ttoptCompile(session, input, length, argv[1], &options, &first);
  if (status != TTOPT_OK)
    return status;
  printf("schedules: %s\n", ttoptResultSchedules(first, TTOPT_SCHEDULE_JSON));
  printf("picture: %.4s\n", ttoptResultSchedules(first, TTOPT_SCHEDULE_SVG));

  TtoptOverride override = TTOPT_OVERRIDE_INIT;
  char *ptx = edited("// edited\n", ttoptResultArtifact(first, TTOPT_STAGE_ASM, NULL));
  override.name = "edited.ptx";
  override.stage = TTOPT_STAGE_ASM;
  override.bytes = ptx;
  override.length = strlen(ptx);
  options.overrides = &override;
  options.num_overrides = 1;
  if (ttoptCompile(session, input, length, argv[1], &options, &second) == TTOPT_OK)
    printf("taken as it is: %s\n",
           strcmp(ttoptResultArtifact(second, TTOPT_STAGE_ASM, NULL), ptx) == 0 ? "yes" : "no");

  /* What would not be used is an error, as is what is for something else. */
  options.stop_after = TTOPT_STAGE_TTGIR;
  status = ttoptCompile(session, input, length, argv[1], &options, &third);
  printf("status: %d\n", (int)status);
  options.stop_after = TTOPT_STAGE_ASM;
  options.target = "cuda:80";
  status = ttoptCompile(session, input, length, argv[1], &options, &third);
  printf("status: %d\n", (int)status);

  free(ptx);
  ttoptResultDestroy(first);
  ttoptResultDestroy(second);
  ttoptSessionDestroy(session);
  return EXIT_SUCCESS;
}
