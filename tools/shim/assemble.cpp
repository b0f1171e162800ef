// LLVM's assembler, for assembly that a caller wrote.

#include "llvm-c/Core.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace {
/// Adds what is wrong, with its line, to a string.
void take(const llvm::SMDiagnostic &diagnostic, void *text) {
  if (diagnostic.getKind() != llvm::SourceMgr::DK_Error)
    return;
  llvm::raw_string_ostream out(*static_cast<std::string *>(text));
  diagnostic.print(nullptr, out, /*ShowColors=*/false);
}

/// Says whether it went well.
bool assemble(const llvm::Target &target, const llvm::Triple &triple, const char *cpu, llvm::StringRef text,
              llvm::StringRef name, llvm::raw_pwrite_stream &out, std::string &errors) {
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers(target.createMCRegInfo(triple));
  std::unique_ptr<llvm::MCAsmInfo> syntax(target.createMCAsmInfo(*registers, triple, options));
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(target.createMCSubtargetInfo(triple, cpu, ""));
  std::unique_ptr<llvm::MCInstrInfo> instructions(target.createMCInstrInfo());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  sources.setDiagHandler(take, &errors);
  llvm::MCContext context(triple, syntax.get(), registers.get(), subtarget.get(), &sources, &options);
  std::unique_ptr<llvm::MCObjectFileInfo> sections(target.createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(sections.get());
  std::unique_ptr<llvm::MCAsmBackend> backend(target.createMCAsmBackend(*subtarget, *registers, options));
  std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(out);
  std::unique_ptr<llvm::MCCodeEmitter> encoder(target.createMCCodeEmitter(*instructions, context));
  std::unique_ptr<llvm::MCStreamer> streamer(target.createMCObjectStreamer(
      triple, context, std::move(backend), std::move(writer), std::move(encoder), *subtarget));
  std::unique_ptr<llvm::MCAsmParser> parser(llvm::createMCAsmParser(sources, context, *streamer, *syntax));
  std::unique_ptr<llvm::MCTargetAsmParser> dialect(
      target.createMCAsmParser(*subtarget, *parser, *instructions, options));
  if (!dialect)
    return false;
  parser->setTargetParser(*dialect);
  return !parser->Run(/*NoInitialTextSection=*/false);
}
} // namespace

extern "C" {
/// The object file of assembly. Null where there is an error, which is in `error` then, to be freed by LLVM.
LLVMMemoryBufferRef ttAssemble(const char *triple_name, const char *cpu, const char *text, size_t length,
                               const char *name, char **error) {
  std::string errors;
  llvm::Triple triple(triple_name);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, errors);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream out(object);
  if (target && assemble(*target, triple, cpu, llvm::StringRef(text, length), name, out, errors) && errors.empty())
    return llvm::wrap(llvm::MemoryBuffer::getMemBufferCopy(object.str()).release());
  *error = LLVMCreateMessage(errors.c_str());
  return nullptr;
}
}
