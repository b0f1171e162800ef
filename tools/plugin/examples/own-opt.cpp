// A tool like mlir-opt with dialects and passes of one's own, and ttopt's beside them.
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "ttopt_mlir.h"

namespace {
/// A pass of one's own, which runs before and after ttopt's: remarks how many conversions of layouts there are.
struct CountConversions : mlir::PassWrapper<CountConversions, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountConversions)
  llvm::StringRef getArgument() const override { return "count-conversions"; }
  void runOnOperation() override {
    int count = 0;
    getOperation().walk(
        [&](mlir::Operation *op) { count += op->getName().getStringRef() == "ttg.convert_layout"; });
    getOperation().emitRemark() << count << " conversions of layouts";
  }
};
} // namespace

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect>();
  ttoptRegisterDialects(wrap(&registry));
  ttoptRegisterPasses();
  mlir::registerTransformsPasses();
  mlir::PassRegistration<CountConversions>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "an optimizer of one's own\n", registry));
}
