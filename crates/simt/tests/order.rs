//! What orders two accesses to shared memory, and what does not.

use simt::check::{Finding, Kind};
use simt::{Arg, Launch, Outcome};

const SWIZZLE: &str = include_str!("swizzle.ll");

fn launch(ir: &str, args: Vec<Arg>) -> Outcome {
    let module = simt::read::parse("test.ll", ir.as_bytes()).unwrap();
    let program = simt::decode(&module, None).unwrap();
    simt::run(&program, &Launch { args, ..Launch::default() }).unwrap()
}

fn zeros(n: usize) -> Arg {
    Arg::Buffer { name: "x".into(), data: vec![0; n] }
}

/// The text with one passage replaced, which must be there.
fn mutated(ir: &str, from: &str, to: &str) -> String {
    assert!(ir.contains(from), "{from}");
    ir.replace(from, to)
}

fn kinds(o: &Outcome) -> Vec<Kind> {
    let mut k: Vec<Kind> = o.findings.iter().map(|f| f.kind).collect();
    k.dedup();
    k
}

/// A kernel of some threads with shared memory @s of 1024 words and a barrier object @bar, where %t is the thread, %l the
/// lane, %w the warp, %p the thread's word and %q that of the thread xor 1.
fn kernel(threads: u32, body: &str) -> String {
    format!(
        r#"
@s = internal addrspace(3) global [1024 x i32] undef, align 128
@bar = internal addrspace(3) global i64 undef, align 8
define ptx_kernel void @k(ptr addrspace(1) %out) "nvvm.reqntid"="{threads}" {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %l = and i32 %t, 31
  %w = lshr i32 %t, 5
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %t
  %n = xor i32 %t, 1
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %t
  {body}
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1)
declare void @llvm.nvvm.membar.cta()
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
"#
    )
}

fn findings(threads: u32, body: &str) -> Vec<Finding> {
    launch(&kernel(threads, body), vec![zeros(4096)]).findings
}

/// Lanes read what their neighbours wrote, with something between.
fn exchange(between: &str) -> Vec<Finding> {
    let body = format!(
        "store i32 %t, ptr addrspace(3) %p
         {between}
         %v = load i32, ptr addrspace(3) %q
         store i32 %v, ptr addrspace(1) %o
         ret void"
    );
    findings(32, &body)
}

#[test]
fn only_a_barrier_orders_the_lanes_of_a_warp() {
    let sync = |mask: i32| exchange(&format!("call void @llvm.nvvm.bar.warp.sync(i32 {mask})"));
    assert!(sync(-1).is_empty(), "{:?}", sync(-1));
    assert!(exchange("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)").is_empty());
    // What only waits for other lanes does not order memory (PTX ISA, shfl.sync, vote.sync against bar.warp.sync).
    for between in [
        "",
        "%x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)",
        "%x = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 true)",
        "call void @llvm.nvvm.membar.cta()",
    ] {
        let f = exchange(between);
        assert_eq!(f.len(), 1, "{between}: {f:?}");
        assert_eq!(f[0].kind, Kind::SharedRace);
        assert!(
            f[0].message.contains("that lane 1 of warp 0 wrote with no bar.warp.sync between"),
            "{}",
            f[0].message
        );
        let other = f[0].other.as_ref().unwrap();
        assert_eq!((f[0].warp, f[0].lane, other.warp, other.lane), (0, 0, 0, 1));
        assert_eq!((f[0].count, f[0].addresses), (32, Some((1024, 1024 + 4 * 31))));
    }
}

#[test]
fn a_barrier_of_some_lanes_orders_those() {
    let halves = "%low = icmp ult i32 %l, 16
      br i1 %low, label %sync, label %go
    sync:
      call void @llvm.nvvm.bar.warp.sync(i32 65535)
      br label %go
    go:";
    let f = exchange(halves);
    assert_eq!((f.len(), f[0].kind, f[0].lane, f[0].count), (1, Kind::SharedRace, 16, 16), "{f:?}");
}

#[test]
fn matrices_need_their_rows_to_be_there() {
    let run = |ir: &str| launch(ir, vec![zeros(512), zeros(512)]);
    assert_eq!(kinds(&run(SWIZZLE)), []);
    let bad = run(&mutated(SWIZZLE, "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n", ""));
    assert_eq!(kinds(&bad), [Kind::SharedRace]);
}

#[test]
fn one_instruction_that_writes_two_values_to_a_word_is_a_race() {
    let store = |value: &str| findings(32, &format!("store i32 {value}, ptr addrspace(3) @s\n ret void"));
    assert!(store("7").is_empty());
    let f = store("%t");
    assert_eq!((f.len(), f[0].kind, f[0].count), (1, Kind::SharedRace, 31), "{f:?}");
}

#[test]
fn a_word_that_lanes_have_read_is_not_theirs_to_write() {
    let body = |sync: &str| {
        format!(
            "store i32 %t, ptr addrspace(3) %p
             call void @llvm.nvvm.bar.warp.sync(i32 -1)
             %v = load i32, ptr addrspace(3) @s
             store i32 %v, ptr addrspace(1) %o
             {sync}
             %first = icmp eq i32 %t, 0
             br i1 %first, label %again, label %end
             again:
             store i32 9, ptr addrspace(3) @s
             br label %end
             end:
             ret void"
        )
    };
    assert!(findings(32, &body("call void @llvm.nvvm.bar.warp.sync(i32 -1)")).is_empty());
    let f = findings(32, &body(""));
    assert_eq!((f.len(), f[0].kind), (1, Kind::SharedRace), "{f:?}");
    assert!(f[0].message.contains("written that warp 0 read"), "{}", f[0].message);
}

#[test]
fn lanes_of_a_wave_go_together_on_amd() {
    let ir = "target triple = \"amdgpu9.42-amd-amdhsa\"
      @s = internal addrspace(3) global [64 x i32] undef, align 16
      define amdgpu_kernel void @k(ptr addrspace(1) %out) \"amdgpu-flat-work-group-size\"=\"64,64\" {
        %t = call i32 @llvm.amdgcn.workitem.id.x()
        %p = getelementptr i32, ptr addrspace(3) @s, i32 %t
        store i32 %t, ptr addrspace(3) %p
        %n = xor i32 %t, 1
        %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
        %v = load i32, ptr addrspace(3) %q
        %o = getelementptr i32, ptr addrspace(1) %out, i32 %t
        store i32 %v, ptr addrspace(1) %o
        ret void
      }
      declare i32 @llvm.amdgcn.workitem.id.x()";
    assert_eq!(kinds(&launch(ir, vec![zeros(256)])), []);
}

/// Warp 0 writes, its lane 0 arrives on a barrier object, warp 1 waits and reads.
fn arrival(before: &str) -> Vec<Finding> {
    let body = format!(
        "%first = icmp eq i32 %t, 0
         br i1 %first, label %init, label %ready
         init:
         call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
         br label %ready
         ready:
         call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
         %one = icmp eq i32 %w, 1
         br i1 %one, label %consumer, label %producer
         producer:
         store i32 %t, ptr addrspace(3) %p
         {before}
         br i1 %first, label %arrive, label %end
         arrive:
         call void asm sideeffect \"mbarrier.arrive.shared::cta.b64 _, [$0];\", \"r\"(ptr addrspace(3) @bar)
         br label %end
         consumer:
         call void asm sideeffect \"{{\\0A.reg .pred done;\\0Await:\\0Ambarrier.try_wait.parity.shared::cta.b64 done, [$0], 0;\\0A@!done bra.uni wait;\\0A}}\", \"r\"(ptr addrspace(3) @bar)
         %r = getelementptr i32, ptr addrspace(3) @s, i32 %l
         %v = load i32, ptr addrspace(3) %r
         store i32 %v, ptr addrspace(1) %o
         br label %end
         end:
         ret void"
    );
    findings(64, &body)
}

#[test]
fn an_arrival_speaks_for_its_lane_and_those_it_has_met() {
    let good = arrival("call void @llvm.nvvm.bar.warp.sync(i32 -1)");
    assert!(good.is_empty(), "{good:?}");
    let bad = arrival("");
    assert_eq!((bad.len(), bad[0].kind, bad[0].lane, bad[0].count), (1, Kind::SharedRace, 1, 31), "{bad:?}");
}

/// Lane 0 of warp 0 writes a word and sets a flag; warp 1 polls the flag and reads the word.
fn flag(set: &str, read: &str, after: &str) -> Vec<Finding> {
    let body = format!(
        "%flag = getelementptr i32, ptr addrspace(3) @s, i32 512
         %first = icmp eq i32 %t, 0
         br i1 %first, label %init, label %ready
         init:
         store i32 0, ptr addrspace(3) %flag
         br label %ready
         ready:
         call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
         %one = icmp eq i32 %w, 1
         br i1 %one, label %poll, label %producer
         producer:
         br i1 %first, label %tell, label %end
         tell:
         store i32 7, ptr addrspace(3) %p
         {set}
         br label %end
         poll:
         %f = call i32 asm sideeffect \"{read} $0, [$1];\", \"=r,r\"(ptr addrspace(3) %flag)
         %set = icmp eq i32 %f, 1
         br i1 %set, label %use, label %poll
         use:
         {after}
         %v = load i32, ptr addrspace(3) @s
         store i32 %v, ptr addrspace(1) %o
         br label %end
         end:
         ret void"
    );
    findings(64, &body)
}

#[test]
fn releases_are_acquired() {
    let asm =
        |text: &str| format!("call void asm sideeffect \"{text} [$0], 1;\", \"r\"(ptr addrspace(3) %flag)");
    let fence = "call void @llvm.nvvm.membar.cta()";
    let acquire = "ld.acquire.cta.shared.b32";
    let relaxed = "ld.relaxed.cta.shared.b32";
    let red = asm("red.release.cta.shared.add.u32");
    let [acquires, releases] =
        ["acquire", "release"].map(|kind| format!("call void asm sideeffect \"fence.{kind}.cta;\", \"\"()"));
    for (set, read, after) in [
        (asm("st.release.cta.shared.b32"), acquire, ""),
        (red.clone(), acquire, ""),
        (format!("{fence}\n{}", asm("st.relaxed.cta.shared.b32")), acquire, ""),
        (format!("{releases}\n{}", asm("st.relaxed.cta.shared.b32")), acquire, ""),
        ("fence syncscope(\"block\") release\n".to_owned() + &asm("st.relaxed.cta.shared.b32"), acquire, ""),
        (red.clone(), relaxed, fence),
        (red.clone(), relaxed, &acquires),
        (red.clone(), relaxed, "fence syncscope(\"block\") acquire"),
        // A later relaxed operation of another kind continues the release.
        (format!("{red}\n{}", asm("red.relaxed.cta.shared.or.b32")), acquire, ""),
    ] {
        let f = flag(&set, read, after);
        assert!(f.is_empty(), "{set} {read} {after}: {f:?}");
    }
    for (set, read, after) in [
        (asm("st.relaxed.cta.shared.b32"), acquire, ""),
        (red.clone(), relaxed, ""),
        (asm("red.relaxed.cta.shared.add.u32"), acquire, fence),
        // A fence of the other kind.
        (format!("{acquires}\n{}", asm("st.relaxed.cta.shared.b32")), acquire, ""),
        (red.clone(), relaxed, &releases),
        (red.clone(), relaxed, "fence syncscope(\"block\") release"),
        // A plain strong store ends what was released before.
        (format!("{}\n{}", asm("st.release.cta.shared.b32"), asm("st.relaxed.cta.shared.b32")), acquire, ""),
    ] {
        let f = flag(&set, read, after);
        assert_eq!(
            f.iter().map(|f| f.kind).collect::<Vec<_>>(),
            [Kind::SharedRace],
            "{set} {read} {after}: {f:?}"
        );
    }
    // The flag itself must be read strongly.
    let weak = flag(&asm("st.release.cta.shared.b32"), "ld.shared.b32", "");
    assert!(weak.iter().any(|f| f.kind == Kind::SharedRace), "{weak:?}");
}

/// Lane 0 copies the words of a warp to another place of shared memory, asynchronously.
fn moved(before: &str, after: &str) -> Outcome {
    let body = format!(
        "%first = icmp eq i32 %t, 0
         store i32 %t, ptr addrspace(3) %p
         call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"\"()
         call void @llvm.nvvm.bar.warp.sync(i32 -1)
         br i1 %first, label %copy, label %wait
         copy:
         call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
         call void asm sideeffect \"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 128;\", \"r\"(ptr addrspace(3) @bar)
         %to = getelementptr i32, ptr addrspace(3) @s, i32 512
         call void asm sideeffect \"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], 128, [$2];\", \"r,r,r\"(ptr addrspace(3) %to, ptr addrspace(3) @s, ptr addrspace(3) @bar)
         br label %wait
         wait:
         call void @llvm.nvvm.bar.warp.sync(i32 -1)
         {before}
         call void asm sideeffect \"{{\\0A.reg .pred done;\\0Await:\\0Ambarrier.try_wait.parity.shared::cta.b64 done, [$0], 0;\\0A@!done bra.uni wait;\\0A}}\", \"r\"(ptr addrspace(3) @bar)
         {after}
         %i = add i32 %t, 512
         %r = getelementptr i32, ptr addrspace(3) @s, i32 %i
         %v = load i32, ptr addrspace(3) %r
         store i32 %v, ptr addrspace(1) %o
         ret void"
    );
    launch(&kernel(32, &body), vec![zeros(128)])
}

#[test]
fn sources_of_copies_are_read_until_the_wait() {
    let overwrite = "store i32 99, ptr addrspace(3) %p";
    let good = moved("", overwrite);
    assert_eq!(kinds(&good), [], "{:?}", good.findings);
    let want: Vec<u8> = (0..32u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(good.buffers[0], want);
    let bad = moved(overwrite, "");
    assert_eq!(kinds(&bad), [Kind::AsyncHazard]);
    assert!(bad.findings[0].message.contains("may still read it"), "{}", bad.findings[0].message);
    // The copy is as late as it can be: it takes what was written meanwhile.
    assert_eq!(bad.buffers[0], [99, 0, 0, 0].repeat(32));
}

const WGMMA: &str = include_str!("wgmma.ll");

/// Runs the kernel of one `wgmma` on zeros.
fn wgmma(ir: &str) -> Vec<Finding> {
    launch(ir, vec![zeros(2048), zeros(256), zeros(2048)]).findings
}

#[test]
fn registers_of_a_wgmma_are_fenced() {
    assert!(wgmma(WGMMA).is_empty());
    let fence = "  call void @llvm.nvvm.wgmma.fence.sync.aligned()\n";
    let none = wgmma(&mutated(WGMMA, fence, ""));
    assert_eq!((none.len(), none[0].kind), (1, Kind::MissingFence), "{none:?}");
    assert_eq!(none[0].message, "a wgmma before any wgmma.fence");
    // Accumulators that are given, computed before the fence or behind it.
    let call = "$4, $5, 0, 1, 1, 0, 0;\", \"=f,=f,=f,=f,l,l\"(i64 %da, i64 %db)";
    let tied = "$8, $9, 1, 1, 1, 0, 0;\", \"=f,=f,=f,=f,0,1,2,3,l,l\"(float %z, float %z, float %z, float %z, i64 %da, i64 %db)";
    let given = mutated(WGMMA, call, tied);
    let zero = "  %z = uitofp i32 %t to float\n";
    assert!(wgmma(&mutated(&given, fence, &format!("{zero}{fence}"))).is_empty());
    let late = wgmma(&mutated(&given, fence, &format!("{fence}{zero}")));
    assert_eq!((late.len(), late[0].kind, late[0].places), (1, Kind::MissingFence, 1), "{late:?}");
    assert!(late[0].message.contains("a register of a wgmma is written"), "{}", late[0].message);
}

/// Twice, in a loop: A in registers that the next iteration loads anew.
fn fragments(wait: &str) -> Vec<Finding> {
    let asm =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0,$1,$2,$3}, {$4,$4,$4,$4}, $5, 0, 1, 1, 0;";
    let body = format!(
        "store i32 0, ptr addrspace(3) %p
         call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"\"()
         call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
         %base = ptrtoint ptr addrspace(3) @s to i32
         %lo = lshr i32 %base, 4
         %lo64 = zext i32 %lo to i64
         %db = or i64 %lo64, 68720001024
         br label %loop
         loop:
         %i = phi i32 [ 0, %0 ], [ %j, %loop ]
         %a = load i32, ptr addrspace(1) %o
         call void asm sideeffect \"wgmma.fence.sync.aligned;\", \"\"()
         %d = call {{ float, float, float, float }} asm sideeffect \"{asm}\", \"=f,=f,=f,=f,r,l\"(i32 %a, i64 %db)
         call void asm sideeffect \"wgmma.commit_group.sync.aligned;\", \"\"()
         call void asm sideeffect \"wgmma.wait_group.sync.aligned {wait};\", \"\"()
         %j = add i32 %i, 1
         %c = icmp slt i32 %j, 2
         br i1 %c, label %loop, label %end
         end:
         call void asm sideeffect \"wgmma.wait_group.sync.aligned 0;\", \"\"()
         ret void"
    );
    findings(128, &body)
}

#[test]
fn fragments_of_a_wgmma_are_not_written_before_its_wait() {
    assert!(fragments("0").is_empty(), "{:?}", fragments("0"));
    let f = fragments("1");
    assert_eq!((f.len(), f[0].kind), (1, Kind::AsyncHazard), "{f:?}");
    assert!(f[0].message.contains("a register of A is written"), "{}", f[0].message);
}

#[test]
fn findings_of_one_line_are_one() {
    // Two stores of one line, each by 32 lanes that all write the same word.
    let body = "store i32 %t, ptr addrspace(3) @s
      %s1 = getelementptr i32, ptr addrspace(3) @s, i32 100
      store volatile i32 %t, ptr addrspace(3) %s1
      store i32 %t, ptr addrspace(3) %s1
      ret void";
    let o = launch(&kernel(32, body), vec![zeros(128)]);
    assert_eq!(o.findings.len(), 1, "{:?}", o.findings);
    let f = &o.findings[0];
    assert_eq!((f.count, f.places, f.addresses), (31 + 31 + 1, 3, Some((1024, 1424))));
    let text = f.to_string();
    assert!(
        text.contains("(addresses 0x400 to 0x590)") && text.ends_with("63 times at 3 instructions"),
        "{text}"
    );
}

/// Threads load from device memory what the neighbours, `distance` away, stored, with something between.
fn exchange_in_device_memory(between: &str, distance: u32) -> Vec<Finding> {
    let body = format!(
        "store i32 %t, ptr addrspace(1) %o
         {between}
         %m = xor i32 %t, {distance}
         %r = getelementptr i32, ptr addrspace(1) %out, i32 %m
         %v = load i32, ptr addrspace(1) %r
         %e = getelementptr i8, ptr addrspace(1) %o, i32 2048
         store i32 %v, ptr addrspace(1) %e
         ret void"
    );
    findings(64, &body)
}

#[test]
fn what_another_thread_stored_to_device_memory_is_there_behind_a_barrier() {
    let barrier = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";
    // Of two warps the second one loads what the first has stored by then.
    for (distance, count) in [(1, 64), (32, 32)] {
        assert!(exchange_in_device_memory(barrier, distance).is_empty());
        let bad = exchange_in_device_memory("", distance);
        assert_eq!((bad.len(), bad[0].kind, bad[0].count), (1, Kind::DeviceRace, count), "{bad:?}");
        assert!(bad[0].message.contains("device memory is read that lane"), "{}", bad[0].message);
    }
    // A barrier of the warp orders its lanes only.
    assert!(exchange_in_device_memory("call void @llvm.nvvm.bar.warp.sync(i32 -1)", 1).is_empty());
    assert!(!exchange_in_device_memory("call void @llvm.nvvm.bar.warp.sync(i32 -1)", 32).is_empty());
    // A thread sees its own stores.
    assert!(exchange_in_device_memory("", 0).is_empty());
}

#[test]
fn a_load_that_says_weak_may_race_if_nothing_comes_of_it() {
    // Thread 0 adds up in place what all threads load.
    let in_place = |opcode: &str, mask: &str| {
        findings(
            64,
            &format!(
                r#"%first = icmp {mask}
                 %v1 = call i32 asm sideeffect "{opcode}.b32 $0, [ $1 ];", "=r,l"(ptr addrspace(1) %out)
                 %v2 = add i32 %v1, 1
                 call void asm sideeffect "@$2 st.global.b32 [ $0 ], $1;", "l,r,b"(ptr addrspace(1) %out, i32 %v2, i1 %first)
                 %v3 = call i32 asm sideeffect "{opcode}.b32 $0, [ $1 ];", "=r,l"(ptr addrspace(1) %out)
                 %v4 = add i32 %v3, 1
                 call void asm sideeffect "@$2 st.global.b32 [ $0 ], $1;", "l,r,b"(ptr addrspace(1) %out, i32 %v4, i1 %first)
                 ret void"#
            ),
        )
    };
    assert!(in_place("ld.weak.global", "eq i32 %t, 0").is_empty());
    assert_eq!(in_place("ld.global", "eq i32 %t, 0")[0].kind, Kind::DeviceRace);
    // Another thread stores what it has loaded from behind the first thread's store.
    let used = in_place("ld.weak.global", "ult i32 %t, 2");
    assert!(used.iter().any(|finding| finding.kind == Kind::Uninitialized), "{used:?}");
}

/// The same on gfx942, between waves or within one, with what stands around the barrier.
fn exchange_on_amd(fences: [&str; 2], distance: u32) -> Vec<Finding> {
    let [release, acquire] = fences;
    let ir = format!(
        r#"
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %m = xor i32 %t, {distance}
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %t
  %r = getelementptr i32, ptr addrspace(1) %out, i32 %m
  store i32 %t, ptr addrspace(1) %o
  {release}
  call void @llvm.amdgcn.s.barrier()
  {acquire}
  %v = load i32, ptr addrspace(1) %r
  %e = getelementptr i8, ptr addrspace(1) %o, i32 2048
  store i32 %v, ptr addrspace(1) %e
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = {{ "target-cpu"="gfx942" "amdgpu-flat-work-group-size"="128,128" }}
!0 = !{{!"amdgpu-synchronize-as", !"local"}}
"#
    );
    launch(&ir, vec![zeros(4096)]).findings
}

#[test]
fn a_barrier_on_amd_orders_what_its_fences_say() {
    let all = ["fence syncscope(\"workgroup\") release", "fence syncscope(\"workgroup\") acquire"];
    let lds = [
        "fence syncscope(\"workgroup\") release, !mmra !0",
        "fence syncscope(\"workgroup\") acquire, !mmra !0",
    ];
    let wave = ["fence syncscope(\"wavefront\") release", "fence syncscope(\"wavefront\") acquire"];
    assert!(exchange_on_amd(all, 64).is_empty(), "{:?}", exchange_on_amd(all, 64));
    for fences in [lds, wave, ["", ""]] {
        let bad = exchange_on_amd(fences, 64);
        assert_eq!((bad.len(), bad[0].kind), (1, Kind::DeviceRace), "{fences:?}: {bad:?}");
        // The lanes of a wave execute in order.
        assert!(exchange_on_amd(fences, 1).is_empty());
    }
}
