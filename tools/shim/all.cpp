// The shim in one translation unit: most of the time that each of its files takes to compile goes to LLVM's headers.
#include "assemble.cpp"
#include "booleans.cpp"
#include "codegen.cpp"
#include "counters.cpp"
#include "inlining.cpp"
#include "masks.cpp"
#include "random.cpp"
#include "sinking.cpp"
