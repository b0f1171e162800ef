//! Small files, each made wrong in one place.

use super::{check, is_bytecode, section};

fn varint(value: u64) -> Vec<u8> {
    match value {
        ..128 => vec![(value as u8) << 1 | 1],
        _ => [&[0][..], &value.to_le_bytes()].concat(),
    }
}
fn flagged(value: u64, flag: bool) -> Vec<u8> {
    varint(value << 1 | u64::from(flag))
}
fn signed(value: i64) -> Vec<u8> {
    varint((value as u64) << 1 ^ (value >> 63) as u64)
}
fn numbers(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| varint(*value)).collect()
}
/// How many, then what.
fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [varint(items.len() as u64), items.concat()].concat()
}
fn counted(values: &[u64]) -> Vec<u8> {
    list(&values.iter().map(|value| varint(*value)).collect::<Vec<_>>())
}
fn section(id: u8, data: &[u8]) -> Vec<u8> {
    [&[id][..], &varint(data.len() as u64), data].concat()
}

/// A file with one operation, `builtin.module`, whose parts a test can replace.
struct File {
    version: u64,
    strings: Vec<u8>,
    dialects: Vec<u8>,
    /// Builtin, after the unknown location.
    attributes: Vec<Vec<u8>>,
    types: Vec<Vec<u8>>,
    /// Instead of what follows from the two.
    offsets: Option<Vec<u8>>,
    /// Other sections.
    others: Vec<Vec<u8>>,
    ops: Vec<u8>,
}

const UNKNOWN_LOCATION: u64 = 15;

impl File {
    fn new() -> Self {
        let texts = ["builtin", "module", "name"];
        let lengths = texts.iter().rev().map(|text| varint(text.len() as u64 + 1)).collect::<Vec<_>>();
        let text = texts.map(|text| format!("{text}\0")).concat();
        let names = [varint(0), list(&[flagged(1, true)])].concat();
        Self {
            version: 6,
            strings: [list(&lengths), text.into_bytes()].concat(),
            dialects: [list(&[flagged(0, false)]), varint(1), names].concat(),
            attributes: Vec::new(),
            types: Vec::new(),
            offsets: None,
            others: Vec::new(),
            ops: [flagged(1, false), operation(0, &[])].concat(),
        }
    }
    fn attributes(attributes: &[Vec<u8>]) -> Self {
        Self { attributes: attributes.to_vec(), ..Self::new() }
    }
    fn types(types: &[Vec<u8>]) -> Self {
        Self { types: types.to_vec(), ..Self::new() }
    }
    fn typed(ty: Vec<u8>, attribute: Vec<u8>) -> Self {
        Self { types: vec![ty], ..Self::attributes(&[attribute]) }
    }
    /// With operations in the module, in a region of one block with `values` values.
    fn body(values: u64, ops: &[Vec<u8>]) -> Self {
        let region = [numbers(&[1, values]), flagged(ops.len() as u64, false), ops.concat()].concat();
        Self { types: vec![varint(1)], ops: module(&region), ..Self::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let attributes = [&[varint(UNKNOWN_LOCATION)][..], &self.attributes].concat();
        let group = |entries: &[Vec<u8>]| {
            let lengths: Vec<_> = entries.iter().map(|entry| flagged(entry.len() as u64, true)).collect();
            if entries.is_empty() { Vec::new() } else { [varint(0), list(&lengths)].concat() }
        };
        let counts = numbers(&[attributes.len() as u64, self.types.len() as u64]);
        let offsets = [counts, group(&attributes), group(&self.types)].concat();
        [
            b"ML\xEFR".to_vec(),
            varint(self.version),
            b"test\0".to_vec(),
            section(section::STRING, &self.strings),
            section(section::DIALECT, &self.dialects),
            section(section::ATTR_TYPE, &[attributes.concat(), self.types.concat()].concat()),
            section(section::ATTR_TYPE_OFFSET, self.offsets.as_ref().unwrap_or(&offsets)),
            self.others.concat(),
            section(section::IR, &self.ops),
        ]
        .concat()
    }

    fn accepted(&self) {
        let bytes = self.bytes();
        assert!(is_bytecode(&bytes));
        check(&bytes).unwrap();
        for len in 4..bytes.len() {
            assert!(check(&bytes[..len]).is_err(), "cut after {len} bytes of {}", bytes.len());
        }
    }
    fn refused(&self, why: &str) {
        let err = check(&self.bytes()).unwrap_err().to_string();
        assert!(err.contains(why), "{err}");
    }
}

/// An operation at the unknown location; its parts follow what it has.
fn operation(has: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    [varint(0), vec![has], varint(0), parts.concat()].concat()
}
/// A module whose one region is isolated.
fn module(region: &[u8]) -> Vec<u8> {
    let isolated = flagged(1, true);
    [flagged(1, false), operation(16, &[isolated, section(section::IR, region)])].concat()
}
/// An operation with one result, of the first type, and operands.
fn value(operands: &[u64]) -> Vec<u8> {
    operation(2 | 4, &[counted(&[0]), counted(operands)])
}

#[test]
fn small_files() {
    File::new().accepted();
    File::body(2, &[value(&[1]), value(&[0, 0])]).accepted();
}

#[test]
fn headers() {
    File { version: 7, ..File::new() }.refused("version 7");
    assert!(check(b"").is_err());
    assert!(check(b"ML\xEFR\x0dno end").unwrap_err().to_string().contains("producer"));
    File { others: vec![section(9, &[])], ..File::new() }.refused("no section has the number 9");
    File { others: vec![section(section::STRING, &varint(0))], ..File::new() }.refused("twice");
    let bytes = File::new().bytes();
    let without_ir = &bytes[..bytes.len() - section(section::IR, &File::new().ops).len()];
    assert!(check(without_ir).unwrap_err().to_string().contains("operations is missing"));
}

#[test]
fn strings() {
    let strings = |strings: Vec<u8>| File { strings, ..File::new() };
    strings(varint(1 << 40)).refused("1099511627776 strings in 0 bytes");
    strings(numbers(&[1, 100])).refused("a string takes 100 bytes");
    strings(numbers(&[1, 0])).refused("without its end");
    strings([numbers(&[1, 2]), b"ab".to_vec()].concat()).refused("without its end");
    strings([numbers(&[1, 1]), b"\0more".to_vec()].concat()).refused("4 bytes follow the strings");
}

#[test]
fn dialects_and_names() {
    let dialects = |parts: &[Vec<u8>]| File { dialects: parts.concat(), ..File::new() };
    dialects(&[varint(1 << 50)]).refused("dialects in 0 bytes");
    dialects(&[list(&[flagged(3, false)])]).refused("string number 3 of 3");
    dialects(&[list(&[flagged(0, true)]), section(4, &[])]).refused("section 4 where a dialect's version is");
    let one = list(&[flagged(0, false)]);
    dialects(&[one.clone(), varint(1 << 30)]).refused("names of operations in 0 bytes");
    dialects(&[one.clone(), varint(1), numbers(&[1, 1, 2])]).refused("dialect number 1 of 1");
    dialects(&[one.clone(), varint(1), numbers(&[0, 9, 2])]).refused("9 names of operations in 1 bytes");
    dialects(&[one, varint(1), varint(0), list(&[flagged(3, true)])]).refused("string number 3 of 3");
}

#[test]
fn properties_and_resources() {
    let others = |others: &[Vec<u8>]| File { others: others.to_vec(), ..File::new() };
    others(&[section(section::PROPERTIES, &list(&[section(2, b"a")[1..].to_vec()]))]).accepted();
    others(&[section(section::PROPERTIES, &varint(1 << 40))]).refused("properties in 0 bytes");
    others(&[section(section::PROPERTIES, &numbers(&[1, 3]))])
        .refused("an operation's properties takes 3 bytes");
    let resources = |keys: &[Vec<u8>], data: &[u8]| {
        let keys = section(section::RESOURCE_OFFSET, &keys.concat());
        others(&[keys, section(section::RESOURCE, data)])
    };
    let key = |len: u64, kind: u8| [varint(0), varint(0), list(&[[numbers(&[2, len]), vec![kind]].concat()])];
    resources(&key(1, 1), &[1]).accepted();
    resources(&key(1, 1), &[]).refused("a resource takes 1 bytes");
    resources(&key(1, 3), &[1]).refused("kind 3");
    resources(&key(1, 2), &varint(3)).refused("string number 3 of 3");
    resources(&key(10, 0), &numbers(&[1 << 62, 0])).refused("an alignment of 4611686018427387904");
    resources(&key(2, 0), &numbers(&[1, 7])).refused("a blob takes 7 bytes");
    others(&[section(section::RESOURCE, &[])]).refused("are missing");
}

#[test]
fn offsets_of_entries() {
    let offsets = |parts: &[Vec<u8>]| File { offsets: Some(parts.concat()), ..File::new() };
    let one = flagged(1, true);
    offsets(&[numbers(&[1 << 33, 0])]).refused("8589934592 attributes in 1 bytes");
    offsets(&[numbers(&[1, 1 << 33])]).refused("8589934592 types in 0 bytes");
    offsets(&[numbers(&[1, 0, 1, 1]), one.clone()]).refused("dialect number 1 of 1");
    // MLIR 22 writes the second behind its table.
    offsets(&[numbers(&[1, 0, 0, 2]), one.clone(), one.clone()]).refused("a group of 2");
    offsets(&[numbers(&[1, 0, 0, 1]), flagged(5, true)]).refused("takes 5 bytes");
    offsets(&[numbers(&[1, 0, 0, 1]), flagged(u64::MAX >> 1, true)])
        .refused("takes 9223372036854775807 bytes");
    offsets(&[numbers(&[1, 0, 0, 1]), one, varint(0)]).refused("1 bytes follow the offsets");
}

#[test]
fn types() {
    let integer = |width: u64, sign: u64| numbers(&[0, width << 2 | sign]);
    let shape = |sizes: &[i64]| list(&sizes.iter().map(|size| signed(*size)).collect::<Vec<_>>());
    let tensor = |sizes: &[i64]| [varint(13), shape(sizes), varint(0)].concat();
    let vector = |sizes: &[i64]| [varint(19), shape(sizes), varint(0)].concat();
    let index = || varint(1);
    File::types(&[index(), integer(32, 1), tensor(&[4, i64::MIN]), vector(&[4])]).accepted();
    File::types(&[integer(1 << 24, 0)]).refused("16777216 bits");
    File::types(&[integer(8, 3)]).refused("signedness 3");
    File::types(&[index(), tensor(&[-1])]).refused("a dimension of -1 elements");
    File::types(&[index(), tensor(&[1 << 40, 1 << 40])]).refused("can be counted");
    File::types(&[index(), vector(&[0])]).refused("no elements");
    File::types(&[tensor(&[4])]).refused("type 0 can be no element");
    File::types(&[varint(12), tensor(&[4])]).refused("type 0 can be no element");
    File::types(&[varint(21)]).refused("the number 21");
    File::types(&[numbers(&[2, 1 << 30])]).refused("1073741824 elements of a list");
    File::types(&[numbers(&[15, 1, 0])]).refused("contains itself");
    File::types(&[numbers(&[1, 1])]).refused("1 bytes follow");
}

#[test]
fn attributes() {
    let name = || numbers(&[2, 2]);
    let dictionary = |pairs: &[(u64, u64)]| {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| numbers(&[*name, *value])).collect();
        [varint(1), list(&pairs)].concat()
    };
    File::attributes(&[name(), dictionary(&[(1, 0)])]).accepted();
    File::attributes(&[name(), dictionary(&[(1, 0), (1, 1)])]).refused("a name twice");
    File::attributes(&[dictionary(&[(0, 0)])]).refused("is no string");
    File::attributes(&[varint(23)]).refused("the number 23");
    File::attributes(&[numbers(&[0, 1 << 20])]).refused("1048576 elements of a list");
    File::attributes(&[numbers(&[0, 1, 9])]).refused("attribute number 9 of 2");
    File::attributes(&[numbers(&[2, 9])]).refused("string number 9 of 3");
    // MLIR 22 follows these without end.
    File::attributes(&[numbers(&[0, 1, 1])]).refused("contains itself");
    File::attributes(&[numbers(&[0, 1, 2]), numbers(&[0, 1, 1])]).refused("contains itself");
}

#[test]
fn attributes_of_a_type() {
    let integer = |width: u64| numbers(&[0, width << 2]);
    File::typed(integer(8), numbers(&[8, 0]).into_iter().chain([255]).collect()).accepted();
    File::typed(integer(4), numbers(&[8, 0]).into_iter().chain([255]).collect()).refused("fit into 4 bits");
    File::typed(integer(16), [numbers(&[8, 0]), signed(1 << 16)].concat()).refused("fit into 16 bits");
    File::typed(integer(65), numbers(&[8, 0, 2, 0, 0])).accepted();
    File::typed(integer(65), numbers(&[8, 0, 3, 0, 0, 0])).refused("3 words for 65 bits");
    File::typed(varint(12), numbers(&[8, 0, 0])).refused("a type that is none");
    File::typed(varint(5), [numbers(&[9, 0]), signed(1)].concat()).accepted();
    File::typed(integer(32), [numbers(&[9, 0]), signed(1)].concat()).refused("a type that is none");
    File::typed(integer(32), [numbers(&[17, 0, 1, 4]), vec![0; 4]].concat()).accepted();
    // MLIR 22 reads behind the bytes of the other elements.
    File::typed(integer(32), [numbers(&[17, 0, 9, 4]), vec![0; 4]].concat()).refused("9 elements of 4 bytes");
    let tensor = |bytes: &[u8]| {
        let blob = [numbers(&[18, 1, bytes.len() as u64]), bytes.to_vec()].concat();
        File {
            types: vec![integer(16), [numbers(&[13, 1]), signed(3), varint(0)].concat()],
            ..File::attributes(&[blob])
        }
    };
    tensor(&[0; 6]).accepted();
    tensor(&[0; 2]).accepted();
    tensor(&[0; 4]).refused("3 elements of 2 bytes in 4 bytes");
}

#[test]
fn regions_and_blocks() {
    let region =
        |parts: &[Vec<u8>]| File { types: vec![varint(1)], ops: module(&parts.concat()), ..File::new() };
    region(&[varint(0)]).accepted();
    region(&[varint(1 << 40)]).refused("1099511627776 blocks in 0 bytes");
    region(&[numbers(&[1, 1 << 40])]).refused("values of a region in 0 bytes");
    region(&[numbers(&[1, 0]), flagged(1 << 40, false)]).refused("operations in 0 bytes");
    region(&[numbers(&[1, 1]), flagged(0, true), varint(1 << 40)]).refused("arguments of a block in 0 bytes");
    region(&[numbers(&[1, 1]), flagged(0, true), list(&[flagged(0, false)]), vec![0]]).accepted();
    region(&[numbers(&[1, 0]), flagged(0, true), list(&[flagged(0, false)]), vec![0]])
        .refused("more values than");
    region(&[numbers(&[1, 0]), flagged(0, false), vec![1]]).refused("1 bytes follow the last operation");
    let ops = |ops: Vec<u8>| File { ops: [flagged(1, false), ops].concat(), ..File::new() };
    ops(operation(16, &[flagged(1 << 40, false)])).refused("regions in 0 bytes");
    ops(operation(16, &[flagged(1, true), section(section::STRING, &varint(0))])).refused("section 0 where");
    ops(operation(16, &[flagged(1, false), varint(0)])).accepted();
}

#[test]
fn operations() {
    let op = |has: u8, parts: &[Vec<u8>]| File::body(1, &[value(&[]), operation(has, parts)]);
    op(0, &[]).accepted();
    op(1, &[varint(3)]).refused("attribute number 3 of 1");
    op(2, &[varint(1 << 40)]).refused("results in 0 bytes");
    op(2, &[counted(&[1])]).refused("type number 1 of 1");
    op(2, &[counted(&[0])]).refused("more values than it has");
    op(4, &[varint(1 << 40)]).refused("operands in 0 bytes");
    op(4, &[counted(&[1])]).refused("value number 1 of 1");
    op(8, &[varint(1 << 40)]).refused("successors in 0 bytes");
    op(8, &[counted(&[1])]).refused("block number 1 of 1");
    op(64, &[varint(0)]).refused("properties number 0 of 0");
    File::body(0, &[vec![3, 0, 1]]).refused("operation name number 1 of 1");
}

#[test]
fn orders_of_uses() {
    // The first value is used three times.
    let ordered = |order: &[u64], pairs: bool| {
        let order = [flagged(order.len() as u64, pairs), numbers(order)].concat();
        File::body(2, &[operation(2 | 32, &[counted(&[0]), order]), value(&[0, 0, 0])])
    };
    ordered(&[2, 0, 1], false).accepted();
    ordered(&[2, 0], false).refused("no order of the 3 uses");
    ordered(&[2, 2, 1], false).refused("no order of the 3 uses");
    ordered(&[2, 3, 1], false).refused("no order of the 3 uses");
    ordered(&[0, 2, 2, 0], true).accepted();
    ordered(&[0, 2], true).refused("no order of the 3 uses");
    ordered(&[0, 2, 2], true).refused("no order of the 3 uses");
    // MLIR 22 writes behind its table of uses.
    ordered(&[1 << 40, 0, 0, 1 << 40], true).refused("no order of the 3 uses");
}

#[test]
fn deep_nesting_takes_no_stack() {
    let mut ops = flagged(1, false);
    for _ in 0..100_000 {
        ops.extend([operation(16, &[flagged(1, false)]), numbers(&[1, 0]), flagged(1, false)].concat());
    }
    ops.extend(operation(0, &[]));
    check(&File { ops, ..File::new() }.bytes()).unwrap();
    let mut attributes: Vec<Vec<u8>> =
        (1..100_000).map(|at| [varint(0), counted(&[at + 1])].concat()).collect();
    attributes.push(varint(7));
    check(&File::attributes(&attributes).bytes()).unwrap();
}

#[test]
fn changed_bytes_never_panic() {
    let files = [
        File::body(2, &[value(&[1]), value(&[0, 0])]),
        File::typed(numbers(&[0, 32]), numbers(&[8, 0, 0])),
        File::types(&[numbers(&[1]), numbers(&[13, 2, 8, 8, 0]), numbers(&[2, 1, 0, 1, 0])]),
        File::attributes(&[numbers(&[2, 2]), numbers(&[1, 1, 1, 0]), numbers(&[0, 2, 1, 0])]),
    ];
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for i in 0..40_000 {
        let mut bytes = files[i % files.len()].bytes();
        for _ in 0..=random(3) {
            let at = 4 + random(bytes.len() - 4);
            match random(4) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] ^= 1 << random(8),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random(256) as u8),
            }
        }
        refused += usize::from(check(&bytes).is_err());
    }
    assert!((20_000..40_000).contains(&refused), "{refused} refused");
}
