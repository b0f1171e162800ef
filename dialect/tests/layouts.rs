//! Encodings as attributes: conversion to and from values, and the memo table of layouts.

use linear_layout::Encoding;
use mlir_host::driver::Registry;
use mlir_host::ir::{Attr, Context};
use mlir_sys::{MlirContext, mlirContextCreateWithRegistry, mlirContextDestroy};
use std::sync::Arc;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::layout::{equivalent, to_linear_layout};

/// Lines of `encoding; shape; layout`.
const CASES: &str = include_str!("../../crates/linear-layout/tests/encodings.txt");

struct Session(MlirContext);

impl Session {
    fn new() -> Self {
        let mut registry = Registry::new();
        registry.add(&ttopt_dialect::DIALECTS);
        // SAFETY: the registry is valid; the context is destroyed on drop.
        let session = Session(unsafe { mlirContextCreateWithRegistry(registry.raw(), false) });
        assert!(["tt", "ttg", "ttng"].into_iter().all(|name| session.context().load(name)));
        session
    }
    fn context(&self) -> Context<'_> {
        // SAFETY: the context lives as long as the session.
        unsafe { Context::from_raw(self.0) }
    }
    fn attr(&self, text: &str) -> Attr<'_> {
        Attr::parse(self.context(), text).unwrap_or_else(|| panic!("{text} does not parse"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { mlirContextDestroy(self.0) }
    }
}

/// The encodings and shapes of the list.
fn cases() -> impl Iterator<Item = (&'static str, Vec<i64>)> {
    CASES.lines().filter(|line| line.starts_with("#ttg.")).map(|line| {
        let mut fields = line.split("; ");
        let (Some(text), Some(shape)) = (fields.next(), fields.next()) else { panic!("{line}") };
        let shape = shape.trim_matches(['[', ']']).split(", ").map(|size| size.parse().unwrap()).collect();
        (text, shape)
    })
}

#[test]
fn attributes_are_values_and_back() {
    let session = Session::new();
    let mut checked = 0;
    for (text, _) in cases() {
        let attr = session.attr(text);
        let value: Encoding = text.parse().unwrap();
        assert_eq!(encoding(attr).unwrap(), value, "{text}");
        assert_eq!(encoding_attr(session.context(), &value).unwrap(), attr, "{text}");
        assert_eq!(attr.to_string(), value.to_string());
        checked += 1;
    }
    assert!(checked > 100, "only {checked} encodings");
}

#[test]
fn layouts_are_those_of_the_values_and_computed_once() {
    let session = Session::new();
    for (text, shape) in cases() {
        let sizes: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
        let attr = session.attr(text);
        let layout = to_linear_layout(attr, &shape).unwrap();
        assert_eq!(*layout, encoding(attr).unwrap().to_linear_layout(&sizes).unwrap(), "{text} {shape:?}");
        assert!(Arc::ptr_eq(&layout, &to_linear_layout(session.attr(text), &shape).unwrap()));
    }
}

#[test]
fn layouts_do_not_outlive_their_context() {
    // New contexts reuse the addresses of old ones: what they say must not be taken for each other's.
    for warps in [1, 2, 4, 8, 1, 2, 4, 8] {
        let session = Session::new();
        let text = format!(
            "#ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [{warps}], order = [0]}}>"
        );
        let layout = to_linear_layout(session.attr(&text), &[1024]).unwrap();
        assert_eq!(layout.in_size(linear_layout::Dim::WARP), Some(warps));
    }
}

#[test]
fn differently_spelled_layouts_are_equivalent() {
    let session = Session::new();
    let blocked = session
        .attr("#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>");
    let linear = session
        .attr("#ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>");
    assert!(equivalent(blocked, linear, &[64]));
    assert!(equivalent(blocked, linear, &[128]));
    let swapped = session
        .attr("#ttg.linear<{register = [[2]], lane = [[1], [4], [8], [16], [32]], warp = [], block = []}>");
    assert!(!equivalent(blocked, swapped, &[64]));
    // Padding is no part of the layout, and all the same a difference.
    let plain = session.attr("#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>");
    let padded = session.attr("#ttg.padded_shared<[8:+4] {order = [0], shape = [64]}>");
    assert!(!equivalent(plain, padded, &[64]));
}

#[test]
fn what_is_no_encoding_is_an_error() {
    let session = Session::new();
    let unit = Attr::unit(session.context());
    assert!(encoding(unit).unwrap_err().contains("is not a layout encoding"));
    assert!(to_linear_layout(unit, &[4]).is_err());
    let blocked = session
        .attr("#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>");
    assert!(to_linear_layout(blocked, &[4, 4]).is_err());
    assert!(to_linear_layout(blocked, &[12]).unwrap_err().contains("12"));
    assert!(to_linear_layout(blocked, &[-1]).unwrap_err().contains("not static"));
}
