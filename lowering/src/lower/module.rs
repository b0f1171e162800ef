//! What a module declares as functions need it.

use crate::emit::{Emit, Failure, Lowered, address_space, internal, unsupported};
use crate::target::Declare;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Type, Value};
use ttopt_passes::shared_memory::ALIGNMENT;

/// The symbol of dynamic shared memory (DESIGN.md, "Lowering": kernel ABI).
pub(crate) const SHARED_MEMORY: &str = "global_smem";

/// A module, and what has been declared in it.
pub(super) struct Module<'b, 'c> {
    pub(super) block: Block<'c>,
    pub(super) declared: &'b mut FastMap<String, Type<'c>>,
    /// Symbols of constants in global memory.
    pub(super) constants: &'b mut FastMap<Attr<'c>, String>,
}

impl<'c> Declare<'c> for Module<'_, 'c> {
    fn function(
        &mut self,
        name: &str,
        args: &[Type<'c>],
        result: Option<Type<'c>>,
        pure_function: bool,
    ) -> Lowered<()> {
        let Some(first) = self.block.first() else { return internal("empty module") };
        let ctx = first.context();
        let result = result.map_or("void".to_owned(), |ty| ty.to_string());
        let inputs: Vec<String> = args.iter().map(|ty| ty.to_string()).collect();
        let text = format!("!llvm.func<{result} ({})>", inputs.join(", "));
        let Some(ty) = Type::parse(ctx, &text) else {
            return internal(format!("cannot make the type {text}"));
        };
        if let Some(known) = self.declared.get(name) {
            if *known != ty {
                return unsupported(format!("'{name}' is used as {known} and as {ty}"));
            }
            return Ok(());
        }
        let parse = |text: &str| {
            Attr::parse(ctx, text)
                .ok_or_else(|| Failure::Internal(format!("cannot make the attribute {text}")))
        };
        let mut attrs = vec![
            ("sym_name", Attr::string(ctx, name)),
            ("function_type", Attr::type_of(ty)),
            ("CConv", parse("#llvm.cconv<ccc>")?),
            ("linkage", parse("#llvm.linkage<external>")?),
            ("visibility_", Attr::int(ctx, 64, 0)),
        ];
        if pure_function {
            attrs.push((
                "memory_effects",
                parse("#llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>")?,
            ));
            attrs.push(("will_return", Attr::unit(ctx)));
            attrs.push(("no_unwind", Attr::unit(ctx)));
        }
        let region = mlir_host::rewrite::new_region();
        let made = mlir_host::rewrite::create("llvm.func", ctx.unknown_loc(), &[], &[], &attrs, &[region])?;
        made.move_before(first);
        self.declared.insert(name.to_owned(), ty);
        Ok(())
    }

    fn shared_memory(&mut self, e: &mut Emit<'c>) -> Lowered<()> {
        if self.declared.contains_key(SHARED_MEMORY) {
            return Ok(());
        }
        let Some(first) = self.block.first() else { return internal("empty module") };
        let ctx = first.context();
        let array = e.parse_type("!llvm.array<0 x i8>")?;
        let linkage = Attr::parse(ctx, "#llvm.linkage<external>");
        let Some(linkage) = linkage else { return internal("cannot make a linkage") };
        let attrs = [
            ("sym_name", Attr::string(ctx, SHARED_MEMORY)),
            ("global_type", Attr::type_of(array)),
            ("linkage", linkage),
            ("addr_space", Attr::int(ctx, 32, address_space::SHARED.into())),
            ("alignment", Attr::int(ctx, 64, ALIGNMENT as i64)),
            ("visibility_", Attr::int(ctx, 64, 0)),
        ];
        let region = mlir_host::rewrite::new_region();
        let made =
            mlir_host::rewrite::create("llvm.mlir.global", ctx.unknown_loc(), &[], &[], &attrs, &[region])?;
        made.move_before(first);
        self.declared.insert(SHARED_MEMORY.to_owned(), array);
        Ok(())
    }

    fn string(&mut self, e: &mut Emit<'c>, text: &str) -> Lowered<Value<'c>> {
        let bytes = format!("{text}\0");
        let array = e.parse_type(&format!("!llvm.array<{} x i8>", bytes.len()))?;
        let value = Attr::string(e.context(), &bytes);
        let address = self.constant(e, "string", array, value)?;
        let generic = e.ptr(0)?;
        e.value("llvm.addrspacecast", &[address], generic, &[])
    }

    fn table(&mut self, e: &mut Emit<'c>, words: Attr<'c>) -> Lowered<Value<'c>> {
        let tensor = words.ty().and_then(Type::as_tensor);
        let Some(tensor) = tensor else { return unsupported("a table of no elements") };
        let array =
            e.parse_type(&format!("!llvm.array<{} x {}>", tensor.num_elements(), tensor.element()))?;
        self.constant(e, "table", array, words)
    }
}

impl<'c> Module<'_, 'c> {
    /// The address of a constant in global memory, made once.
    fn constant(
        &mut self,
        e: &mut Emit<'c>,
        what: &str,
        ty: Type<'c>,
        value: Attr<'c>,
    ) -> Lowered<Value<'c>> {
        let ctx = e.context();
        let name = match self.constants.get(&value) {
            Some(name) => name.clone(),
            None => {
                let Some(first) = self.block.first() else { return internal("empty module") };
                let name = format!("__ttopt_{what}_{}", self.constants.len());
                let parse = |text: &str| {
                    Attr::parse(ctx, text)
                        .ok_or_else(|| Failure::Internal(format!("cannot make the attribute {text}")))
                };
                let attrs = [
                    ("sym_name", Attr::string(ctx, &name)),
                    ("global_type", Attr::type_of(ty)),
                    ("linkage", parse("#llvm.linkage<internal>")?),
                    ("constant", Attr::unit(ctx)),
                    ("value", value),
                    ("addr_space", Attr::int(ctx, 32, address_space::GLOBAL.into())),
                    ("visibility_", Attr::int(ctx, 64, 0)),
                ];
                let region = mlir_host::rewrite::new_region();
                let made =
                    mlir_host::rewrite::create("llvm.mlir.global", e.loc(), &[], &[], &attrs, &[region])?;
                made.move_before(first);
                self.constants.insert(value, name.clone());
                name
            }
        };
        let global = e.ptr(address_space::GLOBAL)?;
        let symbol = Attr::symbol(ctx, &name);
        e.value("llvm.mlir.addressof", &[], global, &[("global_name", symbol)])
    }
}
