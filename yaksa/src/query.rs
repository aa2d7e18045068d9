//! Size, bounds, and the end of a type.

use crate::abi::{export, out};
use crate::life::running;
use crate::recent::facts;
use crate::table;

export! {
    fn yaksa_type_get_size(number: u64, size: *mut usize) {
        let size = out(size)?;
        running()?;
        size.set(facts(number)?.size as usize);
        Ok(())
    }

    fn yaksa_type_get_extent(number: u64, lb: *mut isize, extent: *mut isize) {
        let (lb, extent) = (out(lb)?, out(extent)?);
        running()?;
        let facts = facts(number)?;
        lb.set(facts.lb as isize);
        extent.set(facts.extent as isize);
        Ok(())
    }

    fn yaksa_type_get_true_extent(number: u64, lb: *mut isize, extent: *mut isize) {
        let (lb, extent) = (out(lb)?, out(extent)?);
        running()?;
        let facts = facts(number)?;
        lb.set(facts.true_lb as isize);
        extent.set(facts.true_extent as isize);
        Ok(())
    }

    fn yaksa_type_free(number: u64) {
        running()?;
        // The null type is nobody's: what was made of nothing is freed like any other.
        if number == 0 { Ok(()) } else { table::remove(number) }
    }
}
