//! Control flow: block order, post-dominators, and the final layout of the bytecode.

use crate::bytecode::{NO_JOIN, Op};
use crate::decode::{Block, Term};
use crate::ir::Loc;

/// Blocks reachable from block 0, every block before its successors except around loops.
pub fn reverse_post_order(n: usize, successors: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut seen = vec![false; n];
    let mut order = Vec::new();
    let mut stack = vec![(0, successors(0), 0)];
    seen[0] = true;
    while let Some((b, next, i)) = stack.last_mut() {
        if let Some(s) = next.get(*i).copied() {
            *i += 1;
            if !seen[s] {
                seen[s] = true;
                stack.push((s, successors(s), 0));
            }
        } else {
            order.push(*b);
            stack.pop();
        }
    }
    order.reverse();
    order
}

/// The immediate post-dominator of every block, `None` where only the end of the kernel is.
///
/// The algorithm is the iterative one of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm"),
/// on the reversed graph with a virtual exit. Blocks that cannot reach an exit have no post-dominator.
pub fn post_dominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let n = successors.len();
    let exit = n;
    let mut preds_of_reverse: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
    let mut reverse: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
    for (b, next) in successors.iter().enumerate() {
        let ends = [exit];
        let next: &[usize] = if next.is_empty() { &ends } else { next };
        for s in next {
            reverse[*s].push(b);
            preds_of_reverse[b].push(*s);
        }
    }
    // Post-order of the reversed graph from the exit.
    let mut number = vec![usize::MAX; n + 1];
    let mut order = Vec::new();
    let mut seen = vec![false; n + 1];
    let mut stack = vec![(exit, 0)];
    seen[exit] = true;
    while let Some((b, i)) = stack.last_mut() {
        if let Some(s) = reverse[*b].get(*i).copied() {
            *i += 1;
            if !seen[s] {
                seen[s] = true;
                stack.push((s, 0));
            }
        } else {
            number[*b] = order.len();
            order.push(*b);
            stack.pop();
        }
    }
    let mut idom = vec![usize::MAX; n + 1];
    idom[exit] = exit;
    let mut changed = true;
    while changed {
        changed = false;
        for b in order.iter().rev().copied().filter(|b| *b != exit) {
            let mut new = usize::MAX;
            for p in preds_of_reverse[b].iter().copied().filter(|p| idom[*p] != usize::MAX) {
                new = if new == usize::MAX { p } else { intersect(&idom, &number, p, new) };
            }
            if idom[b] != new {
                idom[b] = new;
                changed = true;
            }
        }
    }
    (0..n).map(|b| Some(idom[b]).filter(|d| *d < n)).collect()
}

fn intersect(idom: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = idom[a];
        }
        while number[b] < number[a] {
            b = idom[b];
        }
    }
    a
}

/// Bytecode in its final order.
pub(crate) struct Layout {
    pub code: Vec<Op>,
    pub locs: Vec<Loc>,
}

pub(crate) fn layout(blocks: &[Block]) -> Layout {
    let successors: Vec<Vec<usize>> = blocks
        .iter()
        .map(|b| match b.term {
            Some((Term::Jump(t), _)) => vec![t as usize],
            Some((Term::Branch { yes, no, .. }, _)) => vec![yes as usize, no as usize],
            _ => Vec::new(),
        })
        .collect();
    let order = reverse_post_order(blocks.len(), |b| successors[b].clone());
    let joins = post_dominators(&successors);
    let mut at = vec![NO_JOIN; blocks.len()];
    let mut pc = 0;
    for (i, b) in order.iter().enumerate() {
        at[*b] = pc;
        let falls =
            matches!(blocks[*b].term, Some((Term::Jump(t), _)) if order.get(i + 1) == Some(&(t as usize)));
        pc += blocks[*b].ops.len() as u32 + u32::from(!falls);
    }
    let mut code = Vec::with_capacity(pc as usize);
    let mut locs = Vec::with_capacity(pc as usize);
    // A jump that falls through is dropped, unless something else must see it: a block where lanes meet is
    // recognized by its address, which falling through reaches as well.
    for (i, b) in order.iter().enumerate() {
        for (op, loc) in &blocks[*b].ops {
            code.push(op.clone());
            locs.push(*loc);
        }
        let (term, loc) = blocks[*b].term.unwrap_or((Term::Exit, Loc::default()));
        match term {
            Term::Jump(t) if order.get(i + 1) == Some(&(t as usize)) => continue,
            Term::Jump(t) => code.push(Op::Jump { to: at[t as usize] }),
            Term::Branch { c, yes, no } => code.push(Op::Branch {
                c,
                yes: at[yes as usize],
                no: at[no as usize],
                join: joins[*b].map_or(NO_JOIN, |j| at[j]),
            }),
            Term::Exit => code.push(Op::Exit),
        }
        locs.push(loc);
    }
    Layout { code, locs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_a_loop_meet_behind_it() {
        // 0 → 1; 1 → 2, 4; 2 → 3, 1; 3 → 1; 4 ends.
        let g = vec![vec![1], vec![2, 4], vec![3, 1], vec![1], vec![]];
        assert_eq!(post_dominators(&g), [Some(1), Some(4), Some(1), Some(1), None]);
    }

    #[test]
    fn early_returns_meet_nowhere() {
        let g = vec![vec![1, 2], vec![], vec![]];
        assert_eq!(post_dominators(&g), [None, None, None]);
    }

    #[test]
    fn order_puts_definitions_first() {
        let g = [vec![2, 1], vec![3], vec![3], vec![]];
        let order = reverse_post_order(4, |b| g[b].clone());
        let place = |b: usize| order.iter().position(|x| *x == b).unwrap();
        assert!(place(0) < place(1) && place(1) < place(3) && place(2) < place(3));
    }
}
