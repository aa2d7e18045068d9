//! Functions for the requests that `yaksa_ipack` and `yaksa_iunpack` return. These calls have done
//! all their work when they return, so the only request is the null request.

use std::ffi::c_int;

use crate::abi::{Code, Result, export, out, require};
use crate::startup::running;

/// Null request, which stands for a call that has completed.
pub(crate) const NULL: u64 = 0;

fn known(request: u64) -> Result<()> {
    if request == NULL { Ok(()) } else { Err(Code::Internal) }
}

export! {
    fn yaksa_request_test(request: u64, completed: *mut c_int) {
        let completed = out(completed)?;
        running()?;
        known(request)?;
        completed.set(1);
        Ok(())
    }

    fn yaksa_request_wait(request: u64) {
        running()?;
        require(request == NULL)
    }
}
