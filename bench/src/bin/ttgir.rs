//! Compiles modules from TTIR to TTGIR, some times each, all in one process.
//! Usage: `bench-ttgir COUNT`, with lines `FILE WARPS BLOCKS` on stdin. Prints
//! one line of JSON a file: the microseconds from the parsed module to TTGIR.

use ttopt_tools::compile::{Options, Stage, compile};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, count] = args.as_slice() else { panic!("usage: bench-ttgir COUNT < LIST") };
    let count: usize = count.parse().expect("COUNT is a number");
    for line in std::io::stdin().lines() {
        let line = line.expect("the list is text");
        let [path, warps, blocks] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("not 'FILE WARPS BLOCKS': {line}")
        };
        let text = std::fs::read_to_string(path).expect("the file is readable");
        let mut options = Options::for_target("cuda:90", Stage::Ttgir);
        options.num_warps = warps.parse().expect("WARPS is a number");
        options.num_stages = 1;
        options.num_ctas = blocks.parse().expect("BLOCKS is a number");
        options.verify_each = false;
        let once = || compile(&text, path, &options).expect("the module compiles").times.ttgir;
        let times: Vec<String> = (0..count).map(|_| once().as_micros().to_string()).collect();
        println!("[{}]", times.join(", "));
    }
}
