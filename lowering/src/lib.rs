//! TTGIR to LLVM dialects, LLVM IR, PTX and AMDGCN.
