// Where code of an inlined function was called from, in PTX.

#pragma once

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"

namespace llvm {
class DILocation;
class Module;
} // namespace llvm

namespace tt {
/// LLVM 22 drops `inlinedAt` as it writes PTX. So places of inlined functions get lines that no file has, each its own, and
/// in the text that LLVM makes these become `.loc` directives with `inlined_at` (PTX ISA, "Debugging Directives: .loc").
class Inlining {
public:
  /// Numbers the places of inlined functions in a module that is about to become PTX.
  explicit Inlining(llvm::Module &module);
  /// The PTX of that module, with the places themselves.
  void write(llvm::SmallString<0> &ptx) const;

private:
  llvm::SmallVector<const llvm::DILocation *, 0> places;
};
} // namespace tt
