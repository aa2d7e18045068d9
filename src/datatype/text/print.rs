//! Printing: one pass with an explicit stack; shared subtrees that are long become `let` definitions.
//!
//! Invariant: the text is O(arguments of the DAG) however far the tree unfolds, because only subtrees shorter than
//! [`INLINE`] are ever repeated.

use std::collections::HashMap;
use std::fmt;

use crate::datatype::{Combiner, Datatype, Distribution, Order};

/// Estimated characters up to which a shared subtree is repeated rather than named.
const INLINE: u64 = 96;

/// How often each derived node that could be shared is referred to inside `root`.
fn references(root: &Datatype) -> HashMap<usize, u32> {
    let mut references: HashMap<usize, u32> = HashMap::new();
    let mut open = vec![root];
    while let Some(t) = open.pop() {
        for child in t.combiner().children().filter(|c| c.depth() > 0) {
            if child.owners() > 1 {
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

/// Subtrees to define before the root, children first.
fn shared(root: &Datatype) -> Vec<&Datatype> {
    let references = references(root);
    let is_shared = |t: &Datatype| references.get(&t.id()).is_some_and(|&n| n > 1);
    if !references.values().any(|&n| n > 1) {
        return Vec::new();
    }
    let own = |t: &Datatype| 12 + 6 * t.combiner().arguments();
    // Estimated length of each shared node once finished, 0 for the defined ones.
    let mut lengths: HashMap<usize, u64> = HashMap::new();
    let mut defined = Vec::new();
    // A node, its children still to look at, and the length so far.
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
        if is_shared(t) {
            if length > INLINE {
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
    /// `parameter=`, in the long form only.
    Name(&'static str),
}

struct Printer<'f, 'g, 'a> {
    f: &'f mut fmt::Formatter<'g>,
    /// Numbers of the definitions, by node.
    names: HashMap<usize, usize>,
    tasks: Vec<Task<'a>>,
    long: bool,
}

impl<'a> Printer<'_, '_, 'a> {
    fn separator(&self) -> &'static str {
        if self.long { ", " } else { "," }
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        if self.long { write!(self.f, "{name}=") } else { Ok(()) }
    }

    fn number(&mut self, name: &str, value: i64) -> fmt::Result {
        self.name(name)?;
        write!(self.f, "{value}{}", self.separator())
    }

    fn list<T: Copy>(
        &mut self,
        name: &str,
        values: &[T],
        mut item: impl FnMut(&mut fmt::Formatter<'_>, T) -> fmt::Result,
    ) -> fmt::Result {
        self.name(name)?;
        self.f.write_str("[")?;
        for (i, &value) in values.iter().enumerate() {
            if i > 0 {
                self.f.write_str(",")?;
            }
            item(self.f, value)?;
        }
        write!(self.f, "]{}", self.separator())
    }

    fn numbers(&mut self, name: &str, values: &[i64]) -> fmt::Result {
        self.list(name, values, |f, v| write!(f, "{v}"))
    }

    fn order(&mut self, order: Order) -> fmt::Result {
        self.name("order")?;
        let word = match order {
            Order::C => "C",
            Order::Fortran => "Fortran",
        };
        write!(self.f, "{word}{}", self.separator())
    }

    /// The numeric arguments of a node; its datatypes become tasks.
    fn open(&mut self, t: &'a Datatype) -> fmt::Result {
        let combiner = t.combiner();
        self.f.write_str(combiner.text_name())?;
        if let Combiner::Named(_) = combiner {
            return Ok(());
        }
        self.f.write_str("(")?;
        match combiner {
            Combiner::Named(_) | Combiner::Dup { .. } | Combiner::ValueIndex { .. } => {}
            Combiner::Contiguous { count, .. } => self.number("count", *count)?,
            Combiner::Vector { count, blocklength, stride, .. }
            | Combiner::Hvector { count, blocklength, stride, .. } => {
                self.number("count", *count)?;
                self.number("blocklength", *blocklength)?;
                self.number("stride", *stride)?;
            }
            Combiner::Indexed { blocklengths, displacements, .. }
            | Combiner::Hindexed { blocklengths, displacements, .. }
            | Combiner::Struct { blocklengths, displacements, .. } => {
                self.numbers("blocklengths", blocklengths)?;
                self.numbers("displacements", displacements)?;
            }
            Combiner::IndexedBlock { blocklength, displacements, .. }
            | Combiner::HindexedBlock { blocklength, displacements, .. } => {
                self.number("blocklength", *blocklength)?;
                self.numbers("displacements", displacements)?;
            }
            Combiner::Subarray { sizes, subsizes, starts, order, .. } => {
                self.numbers("sizes", sizes)?;
                self.numbers("subsizes", subsizes)?;
                self.numbers("starts", starts)?;
                self.order(*order)?;
            }
            Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
                self.number("size", *size)?;
                self.number("rank", *rank)?;
                self.numbers("gsizes", gsizes)?;
                self.list("distribs", distribs, |f, d| {
                    f.write_str(match d {
                        Distribution::Block => "block",
                        Distribution::Cyclic => "cyclic",
                        Distribution::None => "none",
                    })
                })?;
                self.list("dargs", dargs, |f, d| match d {
                    Some(d) => write!(f, "{d}"),
                    None => f.write_str("default"),
                })?;
                self.numbers("psizes", psizes)?;
                self.order(*order)?;
            }
            Combiner::F90Real { p, r } | Combiner::F90Complex { p, r } => {
                self.name("p")?;
                self.optional(*p)?;
                self.f.write_str(self.separator())?;
                self.name("r")?;
                self.optional(*r)?;
            }
            Combiner::F90Integer { r } => {
                self.name("r")?;
                write!(self.f, "{r}")?;
            }
            Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
                self.number("lb", *lb)?;
                self.number("extent", *extent)?;
            }
        }
        self.tasks.push(Task::Text(")"));
        match combiner {
            Combiner::Struct { types, .. } => {
                self.tasks.push(Task::Text("]"));
                for (i, child) in types.iter().enumerate().rev() {
                    self.tasks.push(Task::Type(child));
                    if i > 0 {
                        self.tasks.push(Task::Text(","));
                    }
                }
                self.tasks.push(Task::Text("["));
                self.tasks.push(Task::Name("types="));
            }
            Combiner::ValueIndex { value, index } => {
                self.tasks.extend([Task::Type(index), Task::Name("index="), Task::Text(self.separator())]);
                self.tasks.extend([Task::Type(value), Task::Name("value=")]);
            }
            _ => self.tasks.extend(combiner.children().map(Task::Type)),
        }
        Ok(())
    }

    fn optional(&mut self, value: Option<i64>) -> fmt::Result {
        match value {
            Some(v) => write!(self.f, "{v}"),
            None => self.f.write_str("undefined"),
        }
    }

    fn run(&mut self) -> fmt::Result {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Text(text) => self.f.write_str(text)?,
                Task::Name(name) if self.long => self.f.write_str(name)?,
                Task::Name(_) => {}
                Task::Type(t) => match self.names.get(&t.id()) {
                    Some(number) => write!(self.f, "t{number}")?,
                    None => self.open(t)?,
                },
            }
        }
        Ok(())
    }
}

/// Shows the text notation, which reads back as an equal datatype; `{:#}` names every parameter but `oldtype`.
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
