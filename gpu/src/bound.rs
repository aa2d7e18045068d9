//! Computes an upper bound of the speed of a transfer in device memory.
//!
//! The bound follows from a model of device memory with three rules. A read fetches a whole aligned
//! granule of [`GRANULE`] bytes. A write writes whole aligned sectors of [`SECTOR`] bytes. If only
//! a part of a sector is written, the sector is read first. So to move a layout with gaps, device
//! memory has to move more bytes than the payload. For the bound, device memory is assumed to move
//! all these bytes at the rate that it reaches in a plain copy. docs/GPU.md says where the rules
//! come from and how exact the model is.
//!
//! [`Touched`] counts the granules and sectors of a layout. The counts are exact, although not
//! every byte is visited. The offset of a loop's iteration within a granule repeats after at most
//! 64 iterations. The counts for these iterations are combined by repeated doubling into the counts
//! for all iterations. So the time for a loop grows only with the logarithm of its trip count.

use std::collections::HashMap;

use ddtc::Committed;
use ddtc::internal::methods::*;
use ddtc::internal::nest::{Body, LoopNest, Node, Normal};

/// Number of bytes that one read fetches from device memory, and alignment of these bytes. A read
/// fetched 64 bytes on an H100 and on an H200 (measured with a prototype of the kernels,
/// 2026-11-28). On a GPU whose reads fetch a different number of bytes, the bound for packing is
/// wrong.
pub const GRANULE: u64 = 64;

/// Number of bytes of a sector, and alignment of sectors. Device memory is written in whole
/// sectors. The number was measured together with [`GRANULE`].
pub const SECTOR: u64 = 32;

/// Maximum number of entries that are written to lists while the sectors of one layout are counted.
/// An entry is a contiguous run or a part of a set of bytes. Lists with this number of entries take
/// at most 64 MiB.
const MAX_RUNS: u64 = 1 << 21;

/// Maximum number of parts that `Sets::repeat` repeats separately. `Sets::repeat` may do so if the
/// copies of a set overlap or interleave. If such a set has more parts, `Sets::repeat` lists the
/// contiguous runs of all repetitions instead.
const MAX_PARTS: usize = 1 << 12;

/// Maximum number of sets that are nested in each other. The functions that go through nested sets
/// recurse once for each level, so the limit bounds the stack that they need.
const MAX_DEPTH: u32 = 128;

/// Maximum number of entries in the cache [`Counter::known`]. An entry has the counts of granules
/// and sectors of one set of bytes that begins at one offset within a granule. A cache with this
/// number of entries takes about 65 MiB: the hash map then has 2^19 slots of 128 bytes each.
const MAX_KNOWN: usize = 1 << 18;

/// Maximum number of times that the counts of two sets are combined ([`Span::joined`]) while the
/// sectors of one layout are counted. This number of combinations takes about a second.
const MAX_JOINS: u64 = 1 << 26;

/// Numbers of granules and sectors of device memory that contain bytes of a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Number of granules of 64 bytes that contain at least one byte of the layout.
    pub granules: u64,
    /// Number of sectors of 32 bytes that contain at least one byte of the layout.
    pub sectors: u64,
    /// Number of sectors of 32 bytes that contain at least one byte of the layout and at least one
    /// other byte.
    pub partial: u64,
}

impl Touched {
    /// Counts the granules and the sectors in which bytes of `count` instances of the layout
    /// `committed` lie. The address that belongs to displacement 0 of the first instance is assumed
    /// to be a multiple of 64. A byte to which several entries of the type map refer is counted
    /// once.
    ///
    /// Returns `None` if the offsets of the instances do not fit into signed numbers of 64 bits.
    /// Also returns `None` if the layout is so irregular that counting would take too much time or
    /// memory. There are three such limits:
    ///
    /// * The lists of its contiguous runs and parts may have at most 2^21 entries together.
    /// * The counts of its parts may be combined at most 2^26 times.
    /// * Its parts may be nested at most 128 levels deep.
    pub fn new(committed: &Committed, count: u64) -> Option<Touched> {
        let mut sets = Sets::default();
        let Some(all) = sets.read(committed.nest(), count)? else { return Some(Touched::default()) };
        let Placed { at, set } = all.moved(committed.origin() as i128);
        let (lo, hi) = (at, at + sets.list[set].width);
        if lo < i128::from(i64::MIN) || hi > i128::from(i64::MAX) {
            return None;
        }
        let span = Counter { sets: &sets, known: HashMap::new(), joins: 0 }.span(set, at)?;
        Some(span.touched())
    }

    /// Returns the number of bytes that device memory moves when `payload` bytes are packed, and
    /// the number that it moves when they are unpacked. The numbers follow from the model in the
    /// documentation of this module.
    pub fn bytes(&self, payload: u64) -> [u64; 2] {
        let written = SECTOR.saturating_mul(self.sectors).saturating_add(SECTOR.saturating_mul(self.partial));
        [payload.saturating_add(GRANULE.saturating_mul(self.granules)), payload.saturating_add(written)]
    }

    /// Returns the upper bounds of the speeds of packing and of unpacking `payload` bytes, as
    /// fractions of the speed at which a plain copy copies the same number of contiguous bytes.
    /// Both are 1 if there are no bytes.
    pub fn shares(&self, payload: u64) -> [f64; 2] {
        self.bytes(payload).map(|bytes| if bytes == 0 { 1.0 } else { 2.0 * payload as f64 / bytes as f64 })
    }
}

/// A set of bytes of user memory. Offsets in the set are counted from its first byte.
#[derive(Debug)]
struct Set {
    /// Distance from the first byte of the set to the byte after its last one.
    width: i128,
    /// Number of contiguous runs that [`Sets::unroll`] lists for the set. If the set repeats
    /// another set, the runs of each repetition are listed separately. The number is `u64::MAX` if
    /// it does not fit into 64 bits.
    runs: u64,
    /// Number of levels of nested sets, of which this set is the first. A set that contains no
    /// other set has one level.
    depth: u32,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// One contiguous run, which has every byte from the first to the last.
    Run,
    /// Other sets in the order of their offsets. Each set begins after the last byte of the set
    /// before it.
    Sequence(Vec<Placed>),
    /// Contiguous runs in the order of their offsets, with gaps between them. An entry has the
    /// offset of the first byte of a run, and the offset of the byte after the last one.
    Runs(Vec<(i64, i64)>),
    /// `trip` copies of another set. The first bytes of neighbouring copies are `stride` bytes
    /// apart. The stride is at least the width of the copied set, so the copies do not overlap.
    Repeat { set: usize, trip: u64, stride: i128 },
}

/// Reference to a set of bytes, with the offset in user memory at which the set lies.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Offset in user memory of the first byte of the set.
    at: i128,
    /// Index of the set in [`Sets::list`].
    set: usize,
}

impl Placed {
    fn moved(self, by: i128) -> Placed {
        Placed { at: self.at + by, ..self }
    }
}

/// A set of bytes, and perfectly nested loops that repeat this set. [`Sets::folded`] later returns
/// the set of all repetitions. Until then the loops are kept in a list, so that they can be sorted
/// by stride.
#[derive(Clone, Debug)]
struct Looped {
    of: Placed,
    /// Stride and trip count of each loop. No stride is 0 and no trip count is below 2.
    loops: Vec<(i128, u64)>,
}

/// All sets of bytes that describe a layout. A set refers only to sets that come before it in the
/// list.
#[derive(Debug, Default)]
struct Sets {
    list: Vec<Set>,
    /// Number of entries that have been written to lists so far. An entry is a contiguous run or a
    /// part of a set. The number is limited by [`MAX_RUNS`].
    listed: u64,
}

impl Sets {
    /// Adds the set of all bytes of `count` instances to the list of sets. Returns this set with
    /// its offset in user memory, counted from offset 0 of the nest. Returns `Some(None)` if there
    /// are no bytes, and `None` if a limit is exceeded or if runs are more than 2^63 bytes apart.
    fn read(&mut self, nest: &LoopNest<Normal>, count: u64) -> Option<Option<Placed>> {
        // In the list of nodes, the nodes of a body come before the node that has this body. So the
        // sets of a node's body are already in `nodes` when the node is reached.
        let mut nodes: Vec<Option<Looped>> = Vec::with_capacity(nest.nodes().len());
        for node in nest.nodes() {
            let looped = self.node(node, count, &mut nodes)?;
            nodes.push(looped);
        }
        let Some(root) = self.body(nest.root(), &mut nodes)? else { return Some(None) };
        Some(Some(self.folded(root)?))
    }

    fn node(&mut self, node: &Node, count: u64, nodes: &mut [Option<Looped>]) -> Option<Option<Looped>> {
        let at = i128::from(node.offsets().user);
        match node {
            Node::Copy { n, .. } => {
                let bytes = i128::from(n.for_count(count));
                Some((bytes > 0).then(|| Looped { of: self.run(at, bytes), loops: Vec::new() }))
            }
            Node::Blocks { user, len, .. } => {
                self.reserve(user.len() as u64)?;
                let rows = user.iter().zip(len.iter());
                let rows = rows.map(|(user, len)| (at + i128::from(user), i128::from(len)));
                let runs: Vec<_> = rows.filter(|&(_, len)| len > 0).map(|(at, len)| (at, at + len)).collect();
                if runs.is_empty() {
                    return Some(None);
                }
                Some(Some(Looped { of: self.runs(runs)?, loops: Vec::new() }))
            }
            Node::Table { displacements, body, .. } => {
                let Some(inner) = self.body(*body, nodes)? else { return Some(None) };
                let inner = self.folded(inner)?;
                self.reserve(displacements.len() as u64)?;
                let parts = displacements.iter().map(|d| inner.moved(at + i128::from(d))).collect();
                Some(self.sequence(parts)?.map(|of| Looped { of, loops: Vec::new() }))
            }
            Node::Loop { trip, step, body, .. } => {
                let trip = trip.for_count(count);
                let Some(mut inner) = self.body(*body, nodes)?.filter(|_| trip > 0) else {
                    return Some(None);
                };
                inner.of = inner.of.moved(at);
                if trip > 1 && step.user != 0 {
                    inner.loops.push((i128::from(step.user), trip));
                }
                Some(Some(inner))
            }
        }
    }

    /// Returns the bytes that a body moves, as a set of bytes and loops that repeat this set. If
    /// the body is a single node, the loops are those of this node. They are kept in the list, so
    /// that they can be sorted together with the loops around the body. If the body has several
    /// nodes, the returned set contains all repetitions, and the list of loops is empty.
    fn body(&mut self, body: Body, nodes: &mut [Option<Looped>]) -> Option<Option<Looped>> {
        if let [node] = &nodes[body.range()] {
            return Some(node.clone());
        }
        let mut parts = Vec::new();
        for node in &mut nodes[body.range()] {
            let Some(looped) = node.take() else { continue };
            let of = self.folded(looped)?;
            // Several bodies may share this node. The set `of` contains all repetitions by the
            // node's loops. So store this set without the loops. Otherwise the next body would
            // repeat it again.
            *node = Some(Looped { of, loops: Vec::new() });
            parts.push(of);
        }
        Some(self.sequence(parts)?.map(|of| Looped { of, loops: Vec::new() }))
    }

    /// Returns the set of all repetitions that `looped` describes. Repeats its set by one loop
    /// after the other, from the smallest stride to the largest.
    fn folded(&mut self, mut looped: Looped) -> Option<Placed> {
        looped.loops.sort_by_key(|(stride, _)| stride.abs());
        let mut all = looped.of;
        for (stride, trip) in looped.loops {
            // Replace a negative stride by a positive one. The new loop begins where the last
            // iteration of the old loop lies, and reaches the same bytes in reverse order.
            all = all.moved(stride.min(0) * i128::from(trip - 1));
            all = self.repeat(all, stride.abs(), trip)?;
        }
        Some(all)
    }

    /// Returns the set that consists of `trip` copies of the set `of`. The first bytes of
    /// neighbouring copies are `stride` bytes apart.
    fn repeat(&mut self, of: Placed, stride: i128, trip: u64) -> Option<Placed> {
        let (width, runs) = (self.list[of.set].width, self.list[of.set].runs);
        let last = stride * i128::from(trip - 1);
        if runs == 1 && stride <= width {
            return Some(self.run(of.at, last + width));
        }
        if stride >= width {
            let (runs, form) = (runs.saturating_mul(trip), Form::Repeat { set: of.set, trip, stride });
            let depth = self.list[of.set].depth + 1;
            return self.add(of.at, Set { width: last + width, runs, depth, form });
        }
        // Here the stride is smaller than the width of the set, so the copies of the whole set
        // overlap or interleave. But if the parts of the set are far apart, all copies of one part
        // may lie before all copies of the next part. In this case, repeat each part separately.
        let parts = self.parts(of.set)?;
        let is_apart = |pair: &[Placed]| pair[1].at - pair[0].at >= last + self.list[pair[0].set].width;
        if parts.len() > 1 && parts.windows(2).all(is_apart) {
            let mut repeated = Vec::with_capacity(parts.len());
            for part in parts {
                repeated.push(self.repeat(part.moved(of.at), stride, trip)?);
            }
            return self.sequence(repeated)?;
        }
        self.reserve(runs.saturating_mul(trip))?;
        let mut all = Vec::new();
        for i in 0..trip {
            self.unroll(of.moved(stride * i128::from(i)), &mut all);
        }
        self.runs(all)
    }

    /// Returns the parts of a set in the order of their offsets, if the set is a sequence of sets
    /// or a list of runs. Returns an empty list if the set has another form or more than
    /// [`MAX_PARTS`] parts, and `None` if all lists together would have more than [`MAX_RUNS`]
    /// entries.
    fn parts(&mut self, set: usize) -> Option<Vec<Placed>> {
        match &self.list[set].form {
            Form::Sequence(parts) if parts.len() <= MAX_PARTS => {
                let parts = parts.clone();
                self.reserve(parts.len() as u64)?;
                Some(parts)
            }
            Form::Runs(runs) if runs.len() <= MAX_PARTS => {
                let runs = runs.clone();
                self.reserve(runs.len() as u64)?;
                Some(runs.into_iter().map(|(at, end)| self.run(at.into(), i128::from(end - at))).collect())
            }
            _ => Some(Vec::new()),
        }
    }

    /// Returns the union of the sets `parts`. Returns `Some(None)` if there are no parts, and
    /// `None` if a limit is exceeded or if runs are more than 2^63 bytes apart.
    fn sequence(&mut self, mut parts: Vec<Placed>) -> Option<Option<Placed>> {
        parts.sort_by_key(|part| part.at);
        let end = |sets: &Sets, part: &Placed| part.at + sets.list[part.set].width;
        match parts[..] {
            [] => return Some(None),
            [one] => return Some(Some(one)),
            _ => {}
        }
        let runs = parts.iter().fold(0u64, |runs, part| runs.saturating_add(self.list[part.set].runs));
        if parts.windows(2).all(|pair| end(self, &pair[0]) <= pair[1].at) {
            let (at, width) = (parts[0].at, end(self, parts.last()?) - parts[0].at);
            parts.iter_mut().for_each(|part| part.at -= at);
            let depth = 1 + parts.iter().map(|part| self.list[part.set].depth).max()?;
            return Some(Some(self.add(at, Set { width, runs, depth, form: Form::Sequence(parts) })?));
        }
        self.reserve(runs)?;
        let mut all = Vec::new();
        parts.iter().for_each(|&part| self.unroll(part, &mut all));
        Some(self.runs(all))
    }

    /// Returns the set of all bytes of `runs`. An entry has the offset of the first byte of a run,
    /// and the offset of the byte after its last one. Runs that overlap or touch are merged.
    /// Returns `None` if there are no runs, or if their offsets from the first run do not fit into
    /// an `i64`.
    fn runs(&mut self, mut runs: Vec<(i128, i128)>) -> Option<Placed> {
        runs.sort_unstable();
        runs.dedup_by(|next, run| {
            let merged = next.0 <= run.1;
            if merged {
                run.1 = run.1.max(next.1);
            }
            merged
        });
        let (&(at, first_end), &(_, end)) = (runs.first()?, runs.last()?);
        if runs.len() == 1 {
            return Some(self.run(at, first_end - at));
        }
        let relative = |offset: i128| i64::try_from(offset - at).ok();
        let number = runs.len() as u64;
        let list = runs.into_iter().map(|(at, end)| Some((relative(at)?, relative(end)?)));
        let form = Form::Runs(list.collect::<Option<_>>()?);
        self.add(at, Set { width: end - at, runs: number, depth: 1, form })
    }

    /// Appends all contiguous runs of the set `of` to `all`, with all repetitions unrolled.
    fn unroll(&self, of: Placed, all: &mut Vec<(i128, i128)>) {
        match &self.list[of.set].form {
            Form::Run => all.push((of.at, of.at + self.list[of.set].width)),
            Form::Runs(runs) => {
                all.extend(runs.iter().map(|&(at, end)| (of.at + i128::from(at), of.at + i128::from(end))));
            }
            Form::Sequence(parts) => parts.iter().for_each(|part| self.unroll(part.moved(of.at), all)),
            Form::Repeat { set, trip, stride } => {
                let copies = (0..*trip).map(|i| Placed { at: of.at + stride * i128::from(i), set: *set });
                copies.for_each(|copy| self.unroll(copy, all));
            }
        }
    }

    /// Adds the number `runs` to [`Sets::listed`]. It is the number of entries that the caller
    /// writes to a list. Returns `None` if all lists together would have more than [`MAX_RUNS`]
    /// entries.
    fn reserve(&mut self, runs: u64) -> Option<()> {
        self.listed = self.listed.checked_add(runs).filter(|&all| all <= MAX_RUNS)?;
        Some(())
    }

    fn run(&mut self, at: i128, bytes: i128) -> Placed {
        self.list.push(Set { width: bytes, runs: 1, depth: 1, form: Form::Run });
        Placed { at, set: self.list.len() - 1 }
    }

    /// Adds a set to the list of sets, and returns a reference that places it at the offset `at`.
    /// Returns `None` if the set has more than [`MAX_DEPTH`] levels.
    fn add(&mut self, at: i128, set: Set) -> Option<Placed> {
        if set.depth > MAX_DEPTH {
            return None;
        }
        self.list.push(set);
        Some(Placed { at, set: self.list.len() - 1 })
    }
}

/// Counts of the granules and sectors in which the bytes of a set lie. The first and the last
/// sector are described separately, because a neighbouring set may have bytes in them too.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: Sector,
    /// The last sector. It equals `first` if the set lies in a single sector.
    last: Sector,
    granules: u64,
    sectors: u64,
    /// Number of sectors of which only some bytes belong to the set. The first and the last sector
    /// are not counted.
    partial: u64,
}

/// A sector of 32 bytes that contains at least one byte of a set.
#[derive(Clone, Copy, Debug)]
struct Sector {
    /// Number of the sector, which is its offset divided by [`SECTOR`].
    number: i128,
    /// Number of bytes in the sector that belong to the set.
    bytes: u64,
}

impl Sector {
    fn is_partial(self) -> bool {
        self.bytes < SECTOR
    }

    fn granule(self) -> i128 {
        self.number.div_euclid((GRANULE / SECTOR) as i128)
    }
}

impl Span {
    /// Returns the counts for a single contiguous run of `bytes` bytes that begins at the offset
    /// `at`.
    fn run(at: i128, bytes: i128) -> Span {
        let sector = i128::from(SECTOR);
        let [first, last] = [at, at + bytes - 1].map(|byte| byte.div_euclid(sector));
        let in_sector = |number: i128| {
            let (start, end) = ((number * sector).max(at), ((number + 1) * sector).min(at + bytes));
            Sector { number, bytes: (end - start) as u64 }
        };
        let (first, last) = (in_sector(first), in_sector(last));
        let granules = (last.granule() - first.granule() + 1) as u64;
        Span { first, last, granules, sectors: (last.number - first.number + 1) as u64, partial: 0 }
    }

    /// Returns the counts for the same set of bytes after the number `by` was added to all its
    /// offsets. The number must be a multiple of 64, so that all counts stay the same.
    fn moved(mut self, by: i128) -> Span {
        debug_assert_eq!(by % i128::from(GRANULE), 0, "the sectors stay sectors");
        self.first.number += by / i128::from(SECTOR);
        self.last.number += by / i128::from(SECTOR);
        self
    }

    /// Returns the counts for the union of two sets. The last byte of the set of `self` must lie
    /// before the first byte of the set of `next`.
    fn joined(self, next: Span) -> Span {
        let shared_granule = self.last.granule() == next.first.granule();
        let granules = self.granules + next.granules - u64::from(shared_granule);
        let between = |is_inner: bool, sector: Sector| u64::from(is_inner && sector.is_partial());
        let partial = self.partial + next.partial;
        let (mine, its) = (self.sectors > 1, next.sectors > 1);
        if self.last.number == next.first.number {
            let shared = Sector { bytes: self.last.bytes + next.first.bytes, ..self.last };
            return Span {
                first: if mine { self.first } else { shared },
                last: if its { next.last } else { shared },
                granules,
                sectors: self.sectors + next.sectors - 1,
                partial: partial + between(mine && its, shared),
            };
        }
        Span {
            first: self.first,
            last: next.last,
            granules,
            sectors: self.sectors + next.sectors,
            partial: partial + between(mine, self.last) + between(its, next.first),
        }
    }

    fn touched(self) -> Touched {
        let ends = u64::from(self.first.is_partial()) + u64::from(self.sectors > 1 && self.last.is_partial());
        Touched { granules: self.granules, sectors: self.sectors, partial: self.partial + ends }
    }
}

/// Counts the granules and sectors of sets of bytes.
struct Counter<'s> {
    sets: &'s Sets,
    /// Cache of the values of [`Span`] that were computed so far. A key has the index of a set, and
    /// the offset of the set's first byte within a granule.
    known: HashMap<(usize, i128), Span>,
    /// Number of calls of [`Span::joined`] so far. It is limited by [`MAX_JOINS`].
    joins: u64,
}

impl Counter<'_> {
    /// Returns the counts of granules and sectors for the set with the index `set`. The first byte
    /// of the set is taken to lie at the offset `at`. Returns `None` if counting the sectors of the
    /// layout takes more than [`MAX_JOINS`] calls of [`Span::joined`].
    fn span(&mut self, set: usize, at: i128) -> Option<Span> {
        let inside = at.rem_euclid(i128::from(GRANULE));
        if let Form::Run = self.sets.list[set].form {
            return Some(Span::run(at, self.sets.list[set].width));
        }
        let span = match self.known.get(&(set, inside)) {
            Some(&span) => span,
            None => {
                let span = self.compute(set, inside)?;
                if self.known.len() < MAX_KNOWN {
                    self.known.insert((set, inside), span);
                }
                span
            }
        };
        Some(span.moved(at - inside))
    }

    fn compute(&mut self, set: usize, at: i128) -> Option<Span> {
        let sets = self.sets;
        match &sets.list[set].form {
            Form::Run => Some(Span::run(at, sets.list[set].width)),
            Form::Runs(runs) => {
                let mut all = None;
                for &(start, end) in runs {
                    let next = Span::run(at + i128::from(start), i128::from(end - start));
                    all = Some(self.join(all, next)?);
                }
                all
            }
            Form::Sequence(parts) => {
                let mut all = None;
                for part in parts {
                    let next = self.span(part.set, at + part.at)?;
                    all = Some(self.join(all, next)?);
                }
                all
            }
            &Form::Repeat { set, trip, stride } => {
                // The offset of an iteration within a granule repeats after `period` iterations. So
                // two iterations whose numbers differ by `period` have the same counts.
                let period = GRANULE >> stride.trailing_zeros().min(GRANULE.trailing_zeros());
                let iterations = |counter: &mut Self, from: u64, to: u64| -> Option<Option<Span>> {
                    let mut all = None;
                    for i in from..to {
                        let next = counter.span(set, at + stride * i128::from(i))?;
                        all = Some(counter.join(all, next)?);
                    }
                    Some(all)
                };
                let mut periods = trip / period;
                let mut piece = iterations(self, 0, period.min(trip))??;
                if periods <= 1 {
                    let rest = iterations(self, period.min(trip), trip)?;
                    return rest.map_or(Some(piece), |rest| self.join(Some(piece), rest));
                }
                // `piece` has the counts for one period. Each iteration of the loop except the last
                // doubles `piece` at its end. So in iteration `k`, counted from 0, `piece` has the
                // counts for 2^k periods. If bit `k` of the number of periods is set, the loop
                // joins these counts to `all`, as in binary exponentiation. `done` is the number of
                // periods that `all` contains.
                let (mut all, mut done) = (None, 0);
                let mut step = stride * i128::from(period);
                let whole = step;
                while periods > 0 {
                    if periods % 2 == 1 {
                        all = Some(self.join(all, piece.moved(whole * done))?);
                        done += step / whole;
                    }
                    periods /= 2;
                    if periods > 0 {
                        piece = self.join(Some(piece), piece.moved(step))?;
                        step *= 2;
                    }
                }
                match iterations(self, trip - trip % period, trip)? {
                    Some(rest) => self.join(all, rest),
                    None => all,
                }
            }
        }
    }

    fn join(&mut self, all: Option<Span>, next: Span) -> Option<Span> {
        self.joins += 1;
        (self.joins <= MAX_JOINS).then(|| all.map_or(next, |all| all.joined(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nests sets of bytes in each other, up to [`MAX_DEPTH`] levels. The functions that go through
    /// nested sets recurse once for each level, so they must manage with a small stack. One more
    /// level must be refused. (Tests of [`Touched::new`] do not reach the limit, because
    /// normalization flattens their datatypes.)
    #[test]
    fn levels_of_nested_sets_are_limited() {
        let test = || {
            let mut sets = Sets::default();
            let mut all = sets.run(0, 8);
            // Each level consists of the level before it, and a run in the next granule.
            for level in 1..MAX_DEPTH {
                let next = sets.run(i128::from(level) * i128::from(GRANULE), 8);
                all = sets.sequence(vec![all, next]).unwrap().unwrap();
            }
            assert_eq!(sets.list[all.set].depth, MAX_DEPTH);
            let number = u64::from(MAX_DEPTH);
            let mut runs = Vec::new();
            sets.unroll(all, &mut runs);
            assert_eq!(runs.len() as u64, number);
            let mut counter = Counter { sets: &sets, known: HashMap::new(), joins: 0 };
            let touched = counter.span(all.set, all.at).unwrap().touched();
            assert_eq!(touched, Touched { granules: number, sectors: number, partial: number });
            let next = sets.run(i128::from(MAX_DEPTH) * i128::from(GRANULE), 8);
            assert!(sets.sequence(vec![all, next]).is_none());
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(test).unwrap().join().unwrap();
    }
}
