// The shim in one translation unit: most of the time that each of its files takes to compile goes to MLIR's headers.
#include "asm.cpp"
#include "bytecode.cpp"
#include "conversion.cpp"
#include "dialect.cpp"
#include "driver.cpp"
#include "flow.cpp"
#include "op.cpp"
