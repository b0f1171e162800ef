#include "inlining.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

namespace {
/// The first line that stands for a place; no file has so many.
constexpr unsigned FirstLine = 1u << 30;

constexpr llvm::StringLiteral Loc = "\t.loc\t", File = "\t.file\t";

/// Whether LLVM writes lines of a function into PTX, and nothing else that would have to say the same of them.
bool has_lines_alone(const llvm::Function &function) {
  const llvm::DISubprogram *subprogram = function.getSubprogram();
  return subprogram && subprogram->getUnit() &&
         subprogram->getUnit()->getEmissionKind() == llvm::DICompileUnit::DebugDirectivesOnly;
}

/// Takes a number, and the blanks before it, from the front of a line.
bool take(llvm::StringRef &line, unsigned &number) {
  line = line.ltrim(' ');
  return !line.consumeInteger(10, number);
}

/// Writes the directives of one module.
class Writer {
public:
  Writer(llvm::ArrayRef<const llvm::DILocation *> places, llvm::raw_ostream &out) : places(places), out(out) {}

  /// Knows what the text calls its files: `.file number "path"`. They stand at its end.
  void read_files(llvm::StringRef text) {
    size_t at = 0;
    while ((at = text.find(File, at)) != llvm::StringRef::npos) {
      llvm::StringRef line = text.substr(at + File.size()).take_until([](char c) { return c == '\n'; });
      at += File.size();
      unsigned number;
      if (!take(line, number))
        continue;
      last_file = std::max(last_file, number);
      files.try_emplace(line.trim(), number);
    }
  }

  /// Copies the text, with the places in their directives.
  void copy(llvm::StringRef text) {
    while (!text.empty()) {
      auto [line, rest] = text.split('\n');
      text = rest;
      // What came before in another function is not in this one.
      if (line.starts_with("}"))
        written.clear();
      if (!line.starts_with(Loc) || !directive(line.drop_front(Loc.size())))
        out << line << '\n';
    }
  }

  /// Writes what the directives name: files, and functions, which are strings of a section for debuggers.
  void finish() {
    for (auto &[number, path] : new_files)
      out << File << number << ' ' << path << '\n';
    if (functions.empty())
      return;
    out << "\t.section\t.debug_str\n\t{\n";
    for (auto &[name, number] : functions) {
      out << label(number) << ":\n";
      for (unsigned char byte : name)
        out << ".b8 " << unsigned(byte) << '\n';
      out << ".b8 0\n";
    }
    out << "\t}\n";
  }

private:
  using Place = std::tuple<unsigned, unsigned, unsigned>;

  static std::string label(unsigned number) { return "$L__inlined_function" + std::to_string(number); }

  /// Writes the directive of a place, if the line is one's.
  bool directive(llvm::StringRef line) {
    unsigned file, number, column;
    if (!take(line, file) || !take(line, number) || !take(line, column))
      return false;
    if (number < FirstLine || number - FirstLine >= places.size()) {
      written.insert({file, number, column});
      return false;
    }
    const llvm::DILocation &place = *places[number - FirstLine];
    known.try_emplace(place.getFile(), file);
    call_first(place);
    write(place);
    return true;
  }

  /// ptxas knows a call only if a directive before this one is about it, without or with a caller of its own.
  void call_first(const llvm::DILocation &place) {
    llvm::SmallVector<const llvm::DILocation *> calls;
    for (const llvm::DILocation *call = place.getInlinedAt(); call; call = call->getInlinedAt()) {
      if (written.contains(where(*call)))
        break;
      calls.push_back(call);
    }
    for (const llvm::DILocation *call : llvm::reverse(calls))
      write(*call);
  }

  void write(const llvm::DILocation &place) {
    auto [file, line, column] = where(place);
    out << Loc << file << ' ' << line << ' ' << column;
    if (const llvm::DILocation *call = place.getInlinedAt()) {
      llvm::StringRef name = place.getScope()->getSubprogram()->getName();
      unsigned function = functions.insert({name, unsigned(functions.size())}).first->second;
      auto [file, line, column] = where(*call);
      out << ", function_name " << label(function) << ", inlined_at " << file << ' ' << line << ' ' << column;
    }
    out << '\n';
    written.insert({file, line, column});
  }

  Place where(const llvm::DILocation &place) {
    return {number_of(*place.getFile()), place.getLine(), place.getColumn()};
  }

  unsigned number_of(const llvm::DIFile &file) {
    auto [found, is_new] = known.try_emplace(&file, 0);
    if (is_new) {
      llvm::SmallString<128> path(file.getDirectory());
      llvm::sys::path::append(path, file.getFilename());
      std::string quoted = "\"";
      llvm::raw_string_ostream(quoted).write_escaped(path) << '"';
      auto [named, is_unnamed] = files.try_emplace(quoted, last_file + 1);
      if (is_unnamed)
        new_files.push_back({++last_file, quoted});
      found->second = named->second;
    }
    return found->second;
  }

  llvm::ArrayRef<const llvm::DILocation *> places;
  llvm::raw_ostream &out;
  /// Numbers of files: by the path as it is quoted, and as far as they are known by the file itself.
  llvm::StringMap<unsigned> files;
  llvm::DenseMap<const llvm::DIFile *, unsigned> known;
  unsigned last_file = 0;
  llvm::SmallVector<std::pair<unsigned, std::string>> new_files;
  llvm::MapVector<llvm::StringRef, unsigned> functions;
  /// What directives of the function are about: file, line and column.
  llvm::DenseSet<Place> written;
};
} // namespace

namespace tt {
Inlining::Inlining(llvm::Module &module) {
  llvm::DenseMap<const llvm::DILocation *, llvm::DILocation *> numbered;
  for (llvm::Function &function : module) {
    if (!has_lines_alone(function))
      continue;
    for (llvm::Instruction &at : llvm::instructions(function)) {
      const llvm::DILocation *place = at.getDebugLoc().get();
      // Line 0 is no place.
      if (!place || !place->getInlinedAt() || place->getLine() == 0)
        continue;
      llvm::DILocation *&stands = numbered[place];
      if (!stands) {
        llvm::LLVMContext &context = module.getContext();
        auto *scope = llvm::DILexicalBlockFile::get(context, function.getSubprogram(), place->getFile(), 0);
        stands = llvm::DILocation::get(context, FirstLine + places.size(), 1, scope);
        places.push_back(place);
      }
      at.setDebugLoc(stands);
    }
    // The next function has its own scopes.
    numbered.clear();
  }
}

void Inlining::write(llvm::SmallString<0> &ptx) const {
  if (places.empty())
    return;
  llvm::SmallString<0> text;
  text.reserve(ptx.size() + ptx.size() / 8);
  llvm::raw_svector_ostream out(text);
  Writer writer(places, out);
  writer.read_files(ptx);
  writer.copy(ptx);
  writer.finish();
  ptx.swap(text);
}
} // namespace tt
