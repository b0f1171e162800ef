//! A parser for fragments of PTX as they stand in inline assembly.
//!
//! A fragment is a list of statements in optional braces: labels, `.reg` declarations and instructions with
//! an optional predicate. Operands are variables (`$3`, `a0`, `%r1`), immediates, vectors in braces, and
//! addresses in brackets, which may hold coordinates (`[map, {x, y}]`). Source: PTX ISA, chapter "Syntax".

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register or an operand of the assembly statement.
    Var(String),
    /// An integer, or the bits of a float written `0f…` or `0d…`.
    Imm(u64),
    /// A decimal floating-point number.
    Float(f64),
    /// `{a, b}`.
    List(Vec<Operand>),
    /// `[base + offset, more…]`.
    Mem(Box<Operand>, i64, Vec<Operand>),
    /// `!p`: a predicate, negated.
    Not(Box<Operand>),
    /// `_`: no operand.
    Sink,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `name:`
    Label(String),
    /// Declared registers, in order, and their type.
    Reg(String, Vec<String>),
    /// An instruction.
    Inst {
        /// Predicate variable and whether it is negated.
        pred: Option<(String, bool)>,
        /// The opcode split at its dots.
        op: Vec<String>,
        /// Operands.
        args: Vec<Operand>,
        /// Second destination written `a|b`.
        text: String,
    },
}

/// Parses a fragment.
pub fn parse(text: &str) -> Result<Vec<Statement>, String> {
    let tokens = lex(text)?;
    let mut p = Parser { tokens, at: 0 };
    let mut out = Vec::new();
    while p.at < p.tokens.len() {
        p.statement(&mut out)?;
    }
    Ok(out)
}

fn lex(text: &str) -> Result<Vec<String>, String> {
    let b = text.as_bytes();
    let mut out = Vec::new();
    let mut i = 0;
    while i < b.len() {
        let c = b[i];
        if c.is_ascii_whitespace() {
            i += 1;
        } else if text[i..].starts_with("//") {
            i = text[i..].find('\n').map_or(b.len(), |n| i + n);
        } else if text[i..].starts_with("/*") {
            i = text[i..].find("*/").map_or(b.len(), |n| i + n + 2);
        } else if word(c) {
            let start = i;
            // `::` is part of an opcode (`shared::cta`), a single colon ends a label.
            while i < b.len()
                && (word(b[i])
                    || (b[i] == b':' && b.get(i + 1) == Some(&b':'))
                    || (i > start && b[i] == b':' && b[i - 1] == b':'))
            {
                i += 1;
            }
            out.push(text[start..i].to_owned());
        } else if b"@!,;{}[]()+-|<>:".contains(&c) {
            out.push((c as char).to_string());
            i += 1;
        } else {
            return Err(format!(
                "the character '{}' in inline assembly",
                text[i..].chars().next().unwrap_or('?')
            ));
        }
    }
    Ok(out)
}

fn word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'$' | b'%')
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn eat(&mut self, t: &str) -> bool {
        let yes = self.peek() == t;
        self.at += usize::from(yes);
        yes
    }

    fn expect(&mut self, t: &str) -> Result<(), String> {
        if self.eat(t) {
            return Ok(());
        }
        Err(format!("'{}' in inline assembly where '{t}' must stand", self.peek()))
    }

    fn statement(&mut self, out: &mut Vec<Statement>) -> Result<(), String> {
        if self.eat(";") || self.eat("{") || self.eat("}") {
            return Ok(());
        }
        if self.tokens.get(self.at + 1).is_some_and(|t| t == ":") {
            out.push(Statement::Label(self.next()));
            self.at += 1;
            return Ok(());
        }
        if self.eat(".reg") {
            return self.declaration(out);
        }
        let mut pred = None;
        if self.eat("@") {
            let negate = self.eat("!");
            pred = Some((self.next(), negate));
        }
        let text = self.next();
        let op: Vec<String> = text.split('.').map(str::to_owned).collect();
        let mut args = Vec::new();
        while !matches!(self.peek(), ";" | "}" | "") {
            args.push(self.operand()?);
            while self.eat("|") {
                args.push(self.operand()?);
            }
            if !self.eat(",") {
                break;
            }
            if matches!(self.peek(), ";" | "}" | "") {
                return Err(format!("a missing operand of '{text}' in inline assembly"));
            }
        }
        if !matches!(self.peek(), ";" | "}" | "") {
            return Err(format!("'{}' after the operands of '{text}' in inline assembly", self.peek()));
        }
        self.eat(";");
        out.push(Statement::Inst { pred, op, args, text });
        Ok(())
    }

    fn declaration(&mut self, out: &mut Vec<Statement>) -> Result<(), String> {
        let ty = self.next();
        let mut names = Vec::new();
        loop {
            let name = self.next();
            if self.eat("<") {
                let n: u32 = self.next().parse().map_err(|_| "a .reg declaration without a count")?;
                self.expect(">")?;
                names.extend((0..n).map(|i| format!("{name}{i}")));
            } else {
                names.push(name);
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")?;
        out.push(Statement::Reg(ty.trim_start_matches('.').to_owned(), names));
        Ok(())
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if self.eat("{") {
            let mut list = Vec::new();
            while !self.eat("}") {
                list.push(self.operand()?);
                if !self.eat(",") {
                    self.expect("}")?;
                    break;
                }
            }
            return Ok(Operand::List(list));
        }
        if self.eat("[") {
            let base = self.operand()?;
            let mut offset = 0i64;
            while matches!(self.peek(), "+" | "-") {
                let sign = if self.next() == "-" { -1 } else { 1 };
                match self.operand()? {
                    Operand::Imm(v) => offset += sign * v as i64,
                    other => return Err(format!("an address with the offset {other:?}")),
                }
            }
            let mut more = Vec::new();
            while self.eat(",") {
                more.push(self.operand()?);
            }
            self.expect("]")?;
            return Ok(Operand::Mem(Box::new(base), offset, more));
        }
        if self.eat("!") {
            return Ok(Operand::Not(Box::new(self.operand()?)));
        }
        let negative = self.eat("-");
        self.eat("+");
        let t = self.next();
        if t == "_" {
            return Ok(Operand::Sink);
        }
        if t.len() == 1 && "@!,;{}[]()|<>:".contains(&t) {
            return Err(format!("'{t}' in inline assembly where an operand must stand"));
        }
        if t.is_empty() {
            return Err("inline assembly that ends within an instruction".into());
        }
        if t.starts_with(|c: char| c.is_ascii_digit()) {
            let v = number(&t).ok_or_else(|| format!("the number '{t}' in inline assembly"))?;
            return Ok(match v {
                Operand::Imm(v) if negative => Operand::Imm(v.wrapping_neg()),
                Operand::Float(v) if negative => Operand::Float(-v),
                v => v,
            });
        }
        Ok(Operand::Var(t))
    }
}

fn number(t: &str) -> Option<Operand> {
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    if let Some(h) = t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) {
        return hex(h.trim_end_matches(['U', 'u'])).map(Operand::Imm);
    }
    if let Some(h) = t
        .strip_prefix("0f")
        .or_else(|| t.strip_prefix("0F"))
        .or_else(|| t.strip_prefix("0d"))
        .or_else(|| t.strip_prefix("0D"))
    {
        return hex(h).map(Operand::Imm);
    }
    if let Some(h) = t.strip_prefix("0b") {
        return u64::from_str_radix(h, 2).ok().map(Operand::Imm);
    }
    if t.contains('.') || t.contains('e') {
        return t.parse().ok().map(Operand::Float);
    }
    t.trim_end_matches(['U', 'u']).parse().ok().map(Operand::Imm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(s: &str) -> Operand {
        Operand::Var(s.into())
    }

    #[test]
    fn predicated_vector_load() {
        let s = parse("mov.u32 $0, 0x0;\n\t@!$5 ld.global.v2.b32 { $0, $1 }, [ $4 + -16 ];").unwrap();
        assert_eq!(s.len(), 2);
        let Statement::Inst { pred, op, args, .. } = &s[1] else { panic!() };
        assert_eq!(*pred, Some(("$5".into(), true)));
        assert_eq!(op.join("."), "ld.global.v2.b32");
        assert_eq!(args[0], Operand::List(vec![var("$0"), var("$1")]));
        assert_eq!(args[1], Operand::Mem(Box::new(var("$4")), -16, vec![]));
    }

    #[test]
    fn spin_loop_with_label_and_declaration() {
        let s = parse("{\n.reg .pred done;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n@!done bra.uni wait;\n}").unwrap();
        assert_eq!(s[0], Statement::Reg("pred".into(), vec!["done".into()]));
        assert_eq!(s[1], Statement::Label("wait".into()));
        let Statement::Inst { op, .. } = &s[2] else { panic!() };
        assert_eq!(op[3], "shared::cta");
    }

    #[test]
    fn tensor_coordinates_and_counts() {
        let s = parse(".reg .b32 a<2>, b; cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [$1], [$2, {$3, $4}], [$5];").unwrap();
        assert_eq!(s[0], Statement::Reg("b32".into(), vec!["a0".into(), "a1".into(), "b".into()]));
        let Statement::Inst { args, .. } = &s[1] else { panic!() };
        assert_eq!(
            args[1],
            Operand::Mem(Box::new(var("$2")), 0, vec![Operand::List(vec![var("$3"), var("$4")])])
        );
    }

    #[test]
    fn negated_predicate() {
        let s = parse("cp.async.cg.shared.global [ $0 ], [ $1 ], 16, !$2;").unwrap();
        let Statement::Inst { args, .. } = &s[0] else { panic!() };
        assert_eq!(args[3], Operand::Not(Box::new(var("$2"))));
        assert!(parse("selp.b32 $0, $1, $2, !;").is_err());
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(parse("mov.b32 $0, ;").is_err());
        assert!(parse("mov.b32 $0, $1 $2;").is_err());
        assert!(parse("mov.b32 $0, #1;").is_err());
    }
}
