// MLIR bytecode of hosted dialects.
//
// Operations write their inherent attributes as one dictionary, the same that
// the generic form prints. Attributes and types are written as text, MLIR's own
// fallback: what is read then went through the dialect's parser and verifier,
// so that malformed bytecode cannot make one that text cannot make. A file says
// each dialect's version; one that is newer than ours is refused.
#include "shim.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"

using namespace mlir;

namespace mh {
namespace {

struct HostedVersion : public DialectVersion {
  explicit HostedVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

struct HostedBytecode : public BytecodeDialectInterface {
  HostedBytecode(Dialect *dialect, uint64_t version) : BytecodeDialectInterface(dialect), version(version) {}
  void writeVersion(DialectBytecodeWriter &writer) const override { writer.writeVarInt(version); }
  std::unique_ptr<DialectVersion> readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number = 0;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number > version) {
      reader.emitError() << "version " << number << " of dialect '" << getDialect()->getNamespace()
                         << "' is newer than ours, " << version;
      return nullptr;
    }
    return std::make_unique<HostedVersion>(number);
  }
  uint64_t version;
};

struct BytecodeModel : public BytecodeOpInterface::FallbackModel<BytecodeModel> {
  static LogicalResult readProperties(DialectBytecodeReader &reader, OperationState &state) {
    Attribute attr;
    if (failed(reader.readOptionalAttribute(attr)))
      return failure();
    if (!attr)
      return success();
    StringRef name = state.name.getStringRef();
    auto dict = dyn_cast<DictionaryAttr>(attr);
    if (!dict)
      return reader.emitError() << "properties of '" << name << "' are no dictionary";
    // The operation is made from these later, where nobody could report an error.
    for (NamedAttribute named : dict)
      if (!llvm::is_contained(state.name.getAttributeNames(), named.getName()))
        return reader.emitError() << "'" << name << "' has no property '" << named.getName().getValue() << "'";
    state.propertiesAttr = dict;
    return success();
  }
  void writeProperties(Operation *op, DialectBytecodeWriter &writer) const {
    writer.writeOptionalAttribute(op->getPropertiesAsAttribute());
  }
};

} // namespace

std::unique_ptr<DialectInterface> bytecodeOf(Dialect *dialect, uint64_t version) {
  return std::make_unique<HostedBytecode>(dialect, version);
}

void attachBytecode(mlir::detail::InterfaceMap &map) { map.insertModels<BytecodeModel>(); }

} // namespace mh
