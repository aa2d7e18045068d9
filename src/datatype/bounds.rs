//! Size and bounds of a type map, computed from the sizes and bounds of the children in one pass
//! over the arguments of the constructor.
//!
//! Markers (of the lower bound, lb, and the upper bound, ub) are kept separately from the entries
//! of the map (MPI 5.0 section 5.1.6). The lower bound of a map is its lowest lb marker or, without
//! such a marker, the lowest displacement. The upper bound is the highest ub marker or, without
//! one, the highest end of an entry plus the epsilon that rounds the extent up to a multiple of the
//! strictest alignment in the map. Replication copies markers as it copies entries, so explicit
//! bounds are sticky. A map that is replicated zero times leaves neither markers nor entries.
//!
//! Invariants: a map without entries has true bounds of 0. All values fit in 64 bits, or
//! construction fails.

use super::named::Named;

/// Size and bounds of one type map, in bytes. The fields are packed, so that a node that contains
/// this struct has no padding after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub(crate) struct Bounds {
    /// Number of bytes of data in one instance.
    pub(crate) size: i64,
    /// Whether the map has an entry.
    pub(crate) entries: bool,
    /// Displacement of the first byte of data, or 0 if the map has no entries.
    pub(crate) true_lb: i64,
    /// Displacement after the last byte of data, or 0 if the map has no entries.
    pub(crate) true_ub: i64,
    /// Lower bound.
    pub(crate) lb: i64,
    /// Upper bound. The extent, `ub - lb`, fits in 64 bits too.
    pub(crate) ub: i64,
    /// Whether the lower bound is set by an lb marker.
    pub(crate) lb_marked: bool,
    /// Whether the upper bound is set by a ub marker.
    pub(crate) ub_marked: bool,
    /// Strictest alignment of any entry in bytes, or 1 if the map has no entries.
    pub(crate) alignment: u8,
}

/// Error of a size, bound or extent that does not fit in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

fn fit(value: i128) -> Result<i64, Overflow> {
    i64::try_from(value).map_err(|_| Overflow)
}

impl Bounds {
    /// Bounds of the empty map, which are all 0.
    pub(crate) const EMPTY: Bounds = Bounds {
        size: 0,
        entries: false,
        true_lb: 0,
        true_ub: 0,
        lb: 0,
        ub: 0,
        lb_marked: false,
        ub_marked: false,
        alignment: 1,
    };

    pub(crate) fn from_named(named: Named) -> Bounds {
        let mut layout = Bounds { size: named.size(), ..Bounds::EMPTY };
        match named {
            Named::Lb => layout.lb_marked = true,
            Named::Ub => layout.ub_marked = true,
            _ => {
                layout.entries = true;
                layout.true_ub = named.pieces().last().map_or(0, |&(offset, size)| offset + size);
                layout.alignment = named.alignment() as u8;
                layout.ub = named.extent();
            }
        }
        layout
    }

    pub(crate) fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// Returns the bounds after both markers have been replaced by markers at `lb` and `lb +
    /// extent`, as the combiners `Resized` and `Bounds` do. The entries stay the same.
    pub(crate) fn resized(&self, lb: i64, extent: i64) -> Result<Bounds, Overflow> {
        let ub = lb.checked_add(extent).ok_or(Overflow)?;
        Ok(Bounds { lb, ub, lb_marked: true, ub_marked: true, ..*self })
    }
}

/// Accumulates the bounds of the type map that a constructor makes, from the maps of its children
/// and the displacements at which they are placed.
pub(crate) struct Placing {
    size: i128,
    entries: Option<(i128, i128)>,
    lb_marker: Option<i128>,
    ub_marker: Option<i128>,
    alignment: u8,
}

impl Placing {
    pub(crate) fn new() -> Placing {
        Placing { size: 0, entries: None, lb_marker: None, ub_marker: None, alignment: 1 }
    }

    /// Adds `copies` >= 1 copies of `child`. `first` is the lowest of their displacements and
    /// `last` the highest. The sums have 128 bits; `finish` checks that they fit in 64.
    pub(crate) fn add(
        &mut self,
        child: &Bounds,
        copies: i128,
        first: i64,
        last: i64,
    ) -> Result<(), Overflow> {
        let (first, last) = (i128::from(first), i128::from(last));
        self.size = copies
            .checked_mul(i128::from(child.size))
            .and_then(|s| self.size.checked_add(s))
            .ok_or(Overflow)?;
        if child.entries {
            let (low, high) = (first + i128::from(child.true_lb), last + i128::from(child.true_ub));
            self.entries = Some(self.entries.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
            self.alignment = self.alignment.max(child.alignment);
        }
        if child.lb_marked {
            let at = first + i128::from(child.lb);
            self.lb_marker = Some(self.lb_marker.map_or(at, |m| m.min(at)));
        }
        if child.ub_marked {
            let at = last + i128::from(child.ub);
            self.ub_marker = Some(self.ub_marker.map_or(at, |m| m.max(at)));
        }
        Ok(())
    }

    /// Returns the bounds of the whole map, or an error if one of them does not fit in 64 bits.
    pub(crate) fn finish(self) -> Result<Bounds, Overflow> {
        let (low, high) = self.entries.unwrap_or((0, 0));
        // A map without entries that has one kind of marker has both bounds at that marker.
        let lb = self.lb_marker.unwrap_or(match self.entries {
            Some(_) => low,
            None => self.ub_marker.unwrap_or(0),
        });
        let ub = self.ub_marker.unwrap_or(match self.entries {
            Some(_) => {
                let extent = high - lb;
                high + (-extent).rem_euclid(i128::from(self.alignment))
            }
            None => self.lb_marker.unwrap_or(0),
        });
        fit(ub - lb)?;
        fit(high - low)?;
        Ok(Bounds {
            size: fit(self.size)?,
            entries: self.entries.is_some(),
            true_lb: fit(low)?,
            true_ub: fit(high)?,
            lb: fit(lb)?,
            ub: fit(ub)?,
            lb_marked: self.lb_marker.is_some(),
            ub_marked: self.ub_marker.is_some(),
            alignment: self.alignment,
        })
    }
}

/// Returns the lowest and the highest displacement of `n` >= 1 copies at `from`, `from + step` and
/// so on.
pub(crate) fn displacement_range(from: i64, n: i64, step: i64) -> Result<(i64, i64), Overflow> {
    let last = (n - 1).checked_mul(step).and_then(|d| from.checked_add(d)).ok_or(Overflow)?;
    Ok((from.min(last), from.max(last)))
}
