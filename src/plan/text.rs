//! Text form of plans, printed by `ddtc explain` and compared by filetests. docs/IR.md has the
//! grammar.

use std::fmt;

use super::{Offsets, Phase, Plan, PlanOp};

impl<P: Phase> fmt::Display for Plan<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan {} {} {}", P::NAME, self.kind(), self.target())?;
        for (i, table) in self.tables().iter().enumerate() {
            writeln!(f, "table {i} = {table}")?;
        }
        // Each entry has the remaining operations of a body, which have not been printed yet, and
        // the `else` branch that follows this body, if there is one.
        let mut stack: Vec<(&[PlanOp], Option<&[PlanOp]>)> = vec![(self.body(self.root()), None)];
        if self.root().len == 0 {
            writeln!(f, "nothing")?;
        }
        while let Some((ops, otherwise)) = stack.last_mut() {
            let Some((op, rest)) = ops.split_first() else {
                let otherwise = otherwise.take();
                stack.pop();
                if !stack.is_empty() {
                    write!(f, "{:w$}}}", "", w = 2 * (stack.len() - 1))?;
                    f.write_str(if otherwise.is_some() { " else {\n" } else { "\n" })?;
                }
                stack.extend(otherwise.map(|ops| (ops, None)));
                continue;
            };
            *ops = rest;
            write!(f, "{:w$}{}", "", Head(op), w = 2 * (stack.len() - 1))?;
            match op {
                PlanOp::Guard { then, otherwise, .. } => {
                    writeln!(f, " {{")?;
                    stack.push((self.body(*then), Some(self.body(*otherwise))));
                }
                _ => match op.body() {
                    Some(body) => {
                        writeln!(f, " {{")?;
                        stack.push((self.body(body), None));
                    }
                    None => writeln!(f)?,
                },
            }
        }
        Ok(())
    }
}

/// The text of an operation without its body.
struct Head<'a>(&'a PlanOp);

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PlanOp::Loop { trip, step, unroll, .. } => {
                write!(f, "loop {trip} step {} {}", step.user, step.packed)?;
                if *unroll > 1 {
                    write!(f, " unroll {unroll}")?;
                }
            }
            PlanOp::Table { table, packed, .. } => write!(f, "rows of table {table} packed {packed}")?,
            PlanOp::Move { len, .. } => write!(f, "move {len}")?,
            PlanOp::Permute { words, .. } => {
                write!(f, "permute {} [", words.unit())?;
                for (i, place) in words.places().iter().enumerate() {
                    write!(f, "{}{place}", if i == 0 { "" } else { " " })?;
                }
                write!(f, "]")?;
            }
            PlanOp::Call { call, .. } => {
                write!(f, "call {}", call.callee())?;
                for (role, argument) in call.arguments() {
                    write!(f, " {} {argument}", role.name())?;
                }
            }
            PlanOp::Guard { limit, .. } => write!(f, "if count <= {limit}")?,
        }
        let at = self.0.offsets();
        if at != Offsets::ZERO { write!(f, " at {} {}", at.user, at.packed) } else { Ok(()) }
    }
}
