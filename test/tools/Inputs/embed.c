/* Embeds ttopt in a program that uses MLIR's C API: parses the module in the
 * file given, gives its tensors layouts, prints it and counts its addptrs. */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Pass.h"
#include "ttopt_mlir.h"
#include <stdio.h>
#include <string.h>

static void print(MlirStringRef text, void *file) { fwrite(text.data, 1, text.length, (FILE *)file); }

static MlirWalkResult count(MlirOperation op, void *n) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (name.length == strlen("tt.addptr") && !strncmp(name.data, "tt.addptr", name.length))
    ++*(int *)n;
  return MlirWalkResultAdvance;
}

static int fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int argc, char **argv) {
  static char text[1 << 16];
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  int n = 0;
  if (!file || !fread(text, 1, sizeof text - 1, file))
    return fail("cannot read");
  fclose(file);

  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  ttoptRegisterDialects(registry);
  ttoptRegisterPasses();
  ttoptRegisterPasses();
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  if (!mlirDialectIsNull(mlirContextGetOrLoadDialect(context, mlirStringRefCreateFromCString("tt"))))
    printf("dialect tt is there\n");

  MlirModule module = mlirModuleCreateParse(context, mlirStringRefCreateFromCString(text));
  if (mlirModuleIsNull(module))
    return fail("cannot parse");
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirStringRef pipeline = mlirStringRefCreateFromCString("builtin.module(convert-triton-to-tritongpu{target=cuda:90})");
  if (mlirLogicalResultIsFailure(
          mlirParsePassPipeline(mlirPassManagerGetAsOpPassManager(passes), pipeline, print, stderr)))
    return fail("cannot parse the pipeline");
  if (mlirLogicalResultIsFailure(mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module))))
    return fail("the pass failed");
  mlirOperationPrint(mlirModuleGetOperation(module), print, stdout);
  mlirOperationWalk(mlirModuleGetOperation(module), count, &n, MlirWalkPreOrder);
  printf("%d addptr\n", n);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  return 0;
}
