//! Exported functions that return the size and the bounds of a type, and the function that frees a
//! type.

use crate::abi::{export, out};
use crate::recent::{self, with_facts};
use crate::startup::running;

export! {
    fn yaksa_type_get_size(number: u64, size: *mut usize) {
        let size = out(size)?;
        running()?;
        size.set(with_facts(number, |facts| facts.size)? as usize);
        Ok(())
    }

    fn yaksa_type_get_extent(number: u64, lb: *mut isize, extent: *mut isize) {
        let (lb, extent) = (out(lb)?, out(extent)?);
        running()?;
        let facts = with_facts(number, |facts| (facts.lb, facts.extent))?;
        lb.set(facts.0 as isize);
        extent.set(facts.1 as isize);
        Ok(())
    }

    fn yaksa_type_get_true_extent(number: u64, lb: *mut isize, extent: *mut isize) {
        let (lb, extent) = (out(lb)?, out(extent)?);
        running()?;
        let facts = with_facts(number, |facts| (facts.true_lb, facts.true_extent))?;
        lb.set(facts.0 as isize);
        extent.set(facts.1 as isize);
        Ok(())
    }

    fn yaksa_type_free(number: u64) {
        running()?;
        // Freeing the null type does nothing and succeeds. Constructors return the null type if the
        // new type would have no data, and their callers free every type that they get.
        if number == 0 { Ok(()) } else { recent::remove(number) }
    }
}
