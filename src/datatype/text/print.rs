//! Printing of the text notation, in one pass with an explicit stack. A long subtree that is used
//! more than once is written as a `let` definition.
//!
//! Invariant: the text has O(arguments of the DAG) characters however far the tree unfolds, because
//! only subtrees of at most about [`MAX_REPEATED_CHARS`] characters are written more than once.

use std::collections::HashMap;
use std::fmt;

use crate::datatype::combiner::Argument;
use crate::datatype::{Datatype, Distribution, Order};

/// Maximum length of a shared subtree that is written out at each use, in estimated characters. A
/// longer subtree is defined by `let`, and each use has only its name.
const MAX_REPEATED_CHARS: u64 = 96;

/// Returns, by the address of the node, how many references inside `root` each node has. Named
/// types are left out, and so are nodes that have only one reference in the whole process.
fn references(root: &Datatype) -> HashMap<usize, u32> {
    let mut references: HashMap<usize, u32> = HashMap::new();
    let mut open = vec![root];
    while let Some(t) = open.pop() {
        for child in t.combiner().children().filter(|c| c.depth() > 0) {
            if child.reference_count() > 1 {
                let n = references.entry(child.id()).or_default();
                *n = n.saturating_add(1);
                if *n > 1 {
                    continue;
                }
            }
            open.push(child);
        }
    }
    references
}

/// Returns the subtrees that are defined by `let` before the root is written, children before their
/// parents.
fn shared(root: &Datatype) -> Vec<&Datatype> {
    let references = references(root);
    let is_shared = |t: &Datatype| references.get(&t.id()).is_some_and(|&n| n > 1);
    if !references.values().any(|&n| n > 1) {
        return Vec::new();
    }
    let own = |t: &Datatype| 12 + 6 * t.combiner().arguments();
    // For each shared node whose children have all been visited: the estimated number of characters
    // of its text, or 0 if the node is to be defined by `let`.
    let mut lengths: HashMap<usize, u64> = HashMap::new();
    let mut defined = Vec::new();
    // The path from the root to the current node. Each entry consists of a node, an iterator over
    // the children that have not been visited, and the estimated length of the node's text so far.
    let mut path = vec![(root, root.combiner().children(), own(root))];
    while let Some((t, children, length)) = path.last_mut() {
        if let Some(child) = children.next() {
            match lengths.get(&child.id()) {
                Some(known) => *length = length.saturating_add(*known),
                None if child.depth() > 0 => path.push((child, child.combiner().children(), own(child))),
                None => {}
            }
            continue;
        }
        let (t, mut length) = (*t, *length);
        // All children of the node have been visited, so the estimated length of its text is
        // complete.
        if is_shared(t) {
            if length > MAX_REPEATED_CHARS {
                defined.push(t);
                length = 0;
            }
            lengths.insert(t.id(), length);
        }
        path.pop();
        if let Some(parent) = path.last_mut() {
            parent.2 = parent.2.saturating_add(length);
        }
    }
    defined
}

enum Task<'a> {
    Type(&'a Datatype),
    Text(&'static str),
    /// The prefix `parameter=` of an argument, which is written only in the long form (`{:#}`).
    Name(&'static str),
    /// An argument that contains no datatypes.
    Numbers(Argument<'a>),
}

struct Printer<'f, 'g, 'a> {
    f: &'f mut fmt::Formatter<'g>,
    /// Map from the address of each node that was defined by `let` to the number in its name.
    names: HashMap<usize, usize>,
    tasks: Vec<Task<'a>>,
    long: bool,
}

impl<'a> Printer<'_, '_, 'a> {
    /// Writes the name of a node's constructor, and pushes its arguments as tasks.
    fn open(&mut self, t: &'a Datatype) -> fmt::Result {
        let combiner = t.combiner();
        self.f.write_str(combiner.text_name())?;
        let parameters = combiner.parameters();
        if parameters.is_empty() {
            return Ok(());
        }
        let mut tasks = vec![Task::Text("(")];
        for (i, (name, argument)) in parameters.into_iter().enumerate() {
            if i > 0 {
                tasks.push(Task::Text(if self.long { ", " } else { "," }));
            }
            if name != "oldtype" {
                tasks.push(Task::Name(name));
            }
            match argument {
                Argument::Type(t) => tasks.push(Task::Type(t)),
                Argument::Types(types) => {
                    tasks.push(Task::Text("["));
                    for (i, t) in types.iter().enumerate() {
                        tasks.extend((i > 0).then_some(Task::Text(",")));
                        tasks.push(Task::Type(t));
                    }
                    tasks.push(Task::Text("]"));
                }
                argument => tasks.push(Task::Numbers(argument)),
            }
        }
        tasks.push(Task::Text(")"));
        self.tasks.extend(tasks.into_iter().rev());
        Ok(())
    }

    fn numbers(&mut self, argument: Argument<'_>) -> fmt::Result {
        let optional = |f: &mut fmt::Formatter<'_>, value: Option<i64>, none: &str| match value {
            Some(v) => write!(f, "{v}"),
            None => f.write_str(none),
        };
        match argument {
            Argument::Number(n) => write!(self.f, "{n}"),
            Argument::Optional(n) => optional(self.f, n, "undefined"),
            Argument::Integers(values) | Argument::Counts(values) | Argument::Addresses(values) => {
                self.list(values, |f, v| write!(f, "{v}"))
            }
            Argument::Defaults(values) => self.list(values, |f, v| optional(f, v, "default")),
            Argument::Distributions(values) => self.list(values, |f, d| {
                f.write_str(match d {
                    Distribution::Block => "block",
                    Distribution::Cyclic => "cyclic",
                    Distribution::None => "none",
                })
            }),
            Argument::Order(Order::C) => self.f.write_str("C"),
            Argument::Order(Order::Fortran) => self.f.write_str("Fortran"),
            Argument::Type(_) | Argument::Types(_) => Ok(()),
        }
    }

    fn list<T: Copy>(
        &mut self,
        values: &[T],
        mut item: impl FnMut(&mut fmt::Formatter<'_>, T) -> fmt::Result,
    ) -> fmt::Result {
        self.f.write_str("[")?;
        for (i, &value) in values.iter().enumerate() {
            if i > 0 {
                self.f.write_str(",")?;
            }
            item(self.f, value)?;
        }
        self.f.write_str("]")
    }

    fn run(&mut self) -> fmt::Result {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Text(text) => self.f.write_str(text)?,
                Task::Name(name) if self.long => write!(self.f, "{name}=")?,
                Task::Name(_) => {}
                Task::Numbers(argument) => self.numbers(argument)?,
                Task::Type(t) => match self.names.get(&t.id()) {
                    Some(number) => write!(self.f, "t{number}")?,
                    None => self.open(t)?,
                },
            }
        }
        Ok(())
    }
}

/// Writes the text notation, which reads back as an equal datatype. `{:#}` writes the name of every
/// parameter except `oldtype`.
impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let long = f.alternate();
        let mut printer = Printer { f, names: HashMap::new(), tasks: Vec::new(), long };
        for (number, t) in shared(self).into_iter().enumerate() {
            write!(printer.f, "let t{number} = ")?;
            printer.tasks.push(Task::Type(t));
            printer.run()?;
            printer.f.write_str("; ")?;
            printer.names.insert(t.id(), number);
        }
        printer.tasks.push(Task::Type(self));
        printer.run()
    }
}
