//! Families of processors. They are for choices that make code faster on some processors and slower
//! on others.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::error::{Error, ErrorClass, Result};
use crate::process::{NO_TEXT, cut};

/// Family of processors for which the library makes the same choices. A family gets only choices
/// that were measured on one of its processors. Processors for which no choice was measured are in
/// [`Family::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// AMD family 25 (Zen 3 and Zen 4) with fast string operations and AVX2. Measured on Zen 3
    /// (family 25, model 1), 2026-11.
    Zen3,
    /// Intel Sapphire Rapids and Emerald Rapids (family 6, models 143 and 207) with AVX-512.
    /// Measured on Emerald Rapids, 2026-11.
    Rapids,
    /// Any other processor.
    Other,
}

/// Family by which this process makes its choices: its index in [`Family::ALL`] plus one, or 0 as
/// long as it is not known.
static HOST: AtomicU8 = AtomicU8::new(0);

impl Family {
    /// All families.
    pub const ALL: [Family; 3] = [Family::Other, Family::Zen3, Family::Rapids];

    /// Returns the family by which this process makes its choices. This is the family of this
    /// machine, or the one that was passed to the last successful call of [`Family::assume`]. The
    /// function does not allocate.
    #[inline]
    pub fn host() -> Family {
        match HOST.load(Relaxed) {
            0 => Family::look(),
            known => Family::ALL[usize::from(known - 1) % Family::ALL.len()],
        }
    }

    /// Sets the family by which this process makes its choices, whatever the machine is.
    ///
    /// # Errors
    /// Class `Arg` if this machine lacks instructions that the choices of `family` use.
    pub fn assume(family: Family) -> Result<()> {
        if !family.runs() {
            let rule = "must be a family whose instructions this machine has";
            return Err(Error::new(ErrorClass::Arg, "target", "family", family.name(), rule));
        }
        family.keep();
        Ok(())
    }

    /// Sets the family to the one that the environment variable `DDTC_FAMILY` names. Nothing
    /// changes if the variable is not set.
    ///
    /// # Errors
    /// Class `Arg` if the value is not the name of a family or not text in UTF-8, or if
    /// [`Family::assume`] refuses that family.
    pub fn asked() -> Result<()> {
        match std::env::var("DDTC_FAMILY") {
            Ok(name) => name.parse().and_then(Family::assume),
            Err(VarError::NotPresent) => Ok(()),
            Err(VarError::NotUnicode(value)) => {
                Err(Error::new(ErrorClass::Arg, "target", "DDTC_FAMILY", cut(&value), NO_TEXT))
            }
        }
    }

    fn keep(self) {
        let place = Family::ALL.iter().position(|&family| family == self).unwrap_or(0);
        HOST.store(place as u8 + 1, Relaxed);
    }

    #[cold]
    fn look() -> Family {
        let family = Family::detect();
        family.keep();
        family
    }

    /// Returns the family of this machine, which is read from the identification of its processor
    /// (the instruction CPUID).
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Family {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        let name = __cpuid(0);
        let is_by = |maker: [&[u8; 4]; 3]| {
            [name.ebx, name.edx, name.ecx] == maker.map(|part| u32::from_le_bytes(*part))
        };
        // CPUID returns both numbers in two parts. The family number is the base family plus the
        // extended family, which is 0 unless the base family is 15. The model number consists of
        // the extended model and the model, at least for family 6 of Intel.
        let version = __cpuid(1).eax;
        let family = (version >> 8 & 15) + (version >> 20 & 255);
        let model = version >> 12 & 0xf0 | version >> 4 & 15;
        let announces_fast_strings = || name.eax >= 7 && __cpuid_count(7, 0).ebx >> 9 & 1 != 0;
        if is_by([b"Auth", b"enti", b"cAMD"]) && family == 25 && announces_fast_strings() {
            return if Family::Zen3.runs() { Family::Zen3 } else { Family::Other };
        }
        let is_rapids = is_by([b"Genu", b"ineI", b"ntel"]) && family == 6 && [143, 207].contains(&model);
        if is_rapids && Family::Rapids.runs() { Family::Rapids } else { Family::Other }
    }

    /// Returns the family of this machine, which is [`Family::Other`] on this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Family {
        Family::Other
    }

    /// Returns true if this machine has the instructions that the choices of the family use.
    pub fn runs(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            Family::Zen3 => return std::is_x86_feature_detected!("avx2"),
            Family::Rapids => return std::is_x86_feature_detected!("avx512f"),
            Family::Other => {}
        }
        self == Family::Other
    }

    /// Returns the name of the family in `DDTC_FAMILY` and in records.
    pub fn name(self) -> &'static str {
        match self {
            Family::Zen3 => "zen3",
            Family::Rapids => "rapids",
            Family::Other => "other",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(s: &str) -> Result<Family> {
        let known = Family::ALL.into_iter().find(|family| family.name() == s);
        known.ok_or_else(|| {
            Error::new(ErrorClass::Arg, "target", "family", cut(s.as_ref()), "must be zen3, rapids or other")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_print() {
        for family in Family::ALL {
            assert_eq!(family.name().parse::<Family>().unwrap(), family);
        }
        assert!("zen9".parse::<Family>().is_err());
    }

    /// [`Family::assume`] refuses a family whose instructions this machine lacks. Each other family
    /// becomes the family of the process until the next call of `assume`.
    #[test]
    fn what_is_assumed_is_chosen() {
        let own = Family::detect();
        assert!(own.runs());
        for family in Family::ALL {
            match Family::assume(family) {
                Ok(()) => assert_eq!(Family::host(), family),
                Err(error) => assert!(!family.runs() && error.to_string().contains("family"), "{error}"),
            }
        }
        Family::assume(own).unwrap();
    }
}
