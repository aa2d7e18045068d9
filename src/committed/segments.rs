//! The segments of committed datatypes.

use super::Committed;
use crate::error::{Error, ErrorClass, Result};
use crate::segments::Segments;

impl Committed {
    /// Returns the contiguous pieces of user memory that `count` instances consist of, in the order
    /// in which they are packed. The segments are computed only when methods of the result are
    /// called.
    ///
    /// Positions are relative to displacement 0 of the first instance; with [`Segments::based`]
    /// they are addresses. The first query of a layout costs O(nodes + rows), where nodes and rows
    /// are those of its loop nest and tables; any later query costs O(depth + log rows).
    ///
    /// ```
    /// use ddtc::{Datatype, Segment};
    ///
    /// # fn main() -> ddtc::Result<()> {
    /// // Rows 1 and 2 of a 4 x 3 array of doubles are one piece; columns 1 and 2 are a piece of each row.
    /// let double = Datatype::of::<f64>();
    /// let rows = Datatype::subarray(&[4, 3], &[2, 3], &[1, 0], ddtc::Order::C, &double)?;
    /// assert_eq!(ddtc::commit(&rows)?.segments(1)?.len(), 1);
    /// let columns = Datatype::subarray(&[4, 3], &[4, 2], &[0, 1], ddtc::Order::C, &double)?;
    /// let columns = ddtc::commit(&columns)?;
    /// let segments = columns.segments(1)?;
    /// let mut list = [Segment::default(); 8];
    /// let n = segments.fill(0, &mut list)?;
    /// let at: Vec<i64> = list[..n].iter().map(|segment| segment.at).collect();
    /// assert_eq!((n, at), (4, vec![8, 32, 56, 80]));
    /// // Packed byte 20 lies in segment 1, which begins at packed byte 16; two whole segments fit into 40 bytes.
    /// assert_eq!(segments.find(20)?, (1, 4));
    /// assert_eq!(segments.within(0, 40)?, (2, 32));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Class `Count` if the packed bytes do not fit in 63 bits, `ValueTooLarge` if a displacement
    /// does not fit in 64, and `NoMem` if there is not enough memory.
    pub fn segments(&self, count: u64) -> Result<Segments<'_>> {
        let runs = self.0.engine.runs(&self.0.layout)?;
        let segments = Segments::new(self.nest(), runs, count, self.0.origin as i64)?;
        if self.0.small == 0 || count > i32::MAX as u64 {
            self.reach(count)?;
        }
        Ok(segments)
    }

    /// Checks that the displacements of all instances fit into 64 bits. The check succeeds for
    /// instances without bytes.
    ///
    /// # Errors
    /// Returns class `ValueTooLarge` if a displacement does not fit.
    #[cold]
    fn reach(&self, count: u64) -> Result<()> {
        let t = self.datatype();
        let last = i128::from(count.saturating_sub(1)) * i128::from(t.extent());
        let (low, high) = (i128::from(t.true_lb()) + last.min(0), i128::from(t.true_ub()) + last.max(0));
        if t.size() == 0 || (i64::try_from(low).is_ok() && i64::try_from(high).is_ok()) {
            return Ok(());
        }
        let rule = format!("displacements of all instances, from {low} to {high}, must fit 64 bits");
        Err(Error::new(ErrorClass::ValueTooLarge, "segments", "count", count, rule))
    }
}
