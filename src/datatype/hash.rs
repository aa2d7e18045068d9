//! Structural hash of one node: XXH3-128 of the name of its combiner, its numbers and the hashes of
//! its children.
//!
//! An array is hashed as bytes in one call, so that 10^6 blocks cost no more than reading their
//! memory. In this crate the hash only selects candidates for equality, which are always compared
//! (`compare`), because XXH3 withstands accidents but not attacks. The preload library, in
//! contrast, relies on the hash alone where it remembers types that an MPI library packs
//! differently, and where it recognizes the request of a convertor that it checks. The hash of a
//! node is the same on every machine.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::combiner::{Combiner, Distribution, Order};

struct Hasher(Xxh3);

impl Hasher {
    fn number(&mut self, value: i64) {
        self.0.update(&value.to_le_bytes());
    }

    /// Hashes the length of an array and then its values. Without the length, two neighbouring
    /// arrays would have the same hash after an element moves from the end of the first to the
    /// start of the second.
    fn array(&mut self, values: &[i64]) {
        self.number(values.len() as i64);
        if cfg!(target_endian = "little") {
            self.0.update(bytemuck::cast_slice(values));
        } else {
            values.iter().for_each(|&value| self.number(value));
        }
    }

    fn optional(&mut self, value: Option<i64>) {
        self.number(i64::from(value.is_some()));
        self.number(value.unwrap_or(0));
    }

    fn order(&mut self, order: Order) {
        self.number(order as i64);
    }
}

/// Returns the hash of a node, from the hashes of its children.
pub(crate) fn structural(combiner: &Combiner) -> u128 {
    if let Combiner::Named(n) = combiner {
        return xxh3_128(n.text_name().as_bytes());
    }
    let mut h = Hasher(Xxh3::new());
    h.0.update(combiner.text_name().as_bytes());
    match combiner {
        Combiner::Named(_) | Combiner::Dup { .. } | Combiner::ValueIndex { .. } => {}
        Combiner::Contiguous { count, .. } => h.number(*count),
        Combiner::Vector { count, blocklength, stride, .. }
        | Combiner::Hvector { count, blocklength, stride, .. } => {
            h.number(*count);
            h.number(*blocklength);
            h.number(*stride);
        }
        Combiner::Indexed { blocklengths, displacements, .. }
        | Combiner::Hindexed { blocklengths, displacements, .. }
        | Combiner::Struct { blocklengths, displacements, .. } => {
            h.array(blocklengths);
            h.array(displacements);
        }
        Combiner::IndexedBlock { blocklength, displacements, .. }
        | Combiner::HindexedBlock { blocklength, displacements, .. } => {
            h.number(*blocklength);
            h.array(displacements);
        }
        Combiner::Subarray { sizes, subsizes, starts, order, .. } => {
            h.array(sizes);
            h.array(subsizes);
            h.array(starts);
            h.order(*order);
        }
        Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
            h.number(*size);
            h.number(*rank);
            h.array(gsizes);
            distribs.iter().for_each(|&d: &Distribution| h.number(d as i64));
            dargs.iter().for_each(|&d| h.optional(d));
            h.array(psizes);
            h.order(*order);
        }
        Combiner::F90Real { p, r } | Combiner::F90Complex { p, r } => {
            h.optional(*p);
            h.optional(*r);
        }
        Combiner::F90Integer { r } => h.number(*r),
        Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
            h.number(*lb);
            h.number(*extent);
        }
    }
    // The hashes of the children follow, 32 at a time, so that a long struct takes few calls of the
    // hash function.
    let mut hashes = [0u128; 32];
    let mut filled = 0;
    for child in combiner.children() {
        hashes[filled] = child.structural_hash().to_le();
        filled += 1;
        if filled == hashes.len() {
            h.0.update(bytemuck::cast_slice(&hashes));
            filled = 0;
        }
    }
    h.0.update(bytemuck::cast_slice(&hashes[..filled]));
    h.0.digest128()
}
