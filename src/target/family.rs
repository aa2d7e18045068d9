//! Families of processors: what one of them gains and another would lose by is chosen by family.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::error::{Error, ErrorClass, Result};
use crate::process::{NO_TEXT, cut};

/// A family of processors, as far as a choice depends on it. What was not measured on a family is not chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// AMD's family 25, Zen 3 and 4, that announces fast string operations and has AVX2. Measured on Zen 3 (family 25 model 1), 2026-11.
    Zen3,
    /// Intel's Sapphire and Emerald Rapids (family 6 models 143 and 207), with AVX-512. Measured on the latter, 2026-11.
    Rapids,
    /// Any other.
    Other,
}

/// What is known of this machine: 0 nothing yet, else one more than the place in [`Family::ALL`].
static HOST: AtomicU8 = AtomicU8::new(0);

impl Family {
    /// All families.
    pub const ALL: [Family; 3] = [Family::Other, Family::Zen3, Family::Rapids];

    /// Returns the family of this machine, or the one that [`Family::assume`] was told. Allocates nothing.
    #[inline]
    pub fn host() -> Family {
        match HOST.load(Relaxed) {
            0 => Family::look(),
            known => Family::ALL[usize::from(known - 1) % Family::ALL.len()],
        }
    }

    /// Makes the choices of this process those of `family`, whatever the machine is.
    ///
    /// # Errors
    /// Class `Arg` if the machine lacks instructions that the family's choices use.
    pub fn assume(family: Family) -> Result<()> {
        if !family.runs() {
            let rule = "must be a family whose instructions this machine has";
            return Err(Error::new(ErrorClass::Arg, "target", "family", family.name(), rule));
        }
        family.keep();
        Ok(())
    }

    /// Makes the choices those of the family that `DDTC_FAMILY` names, if it names one.
    ///
    /// # Errors
    /// Class `Arg` if it is no family, or one that [`Family::assume`] refuses.
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

    /// Returns the family of this machine.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Family {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        let name = __cpuid(0);
        let is_by = |maker: [&[u8; 4]; 3]| {
            [name.ebx, name.edx, name.ecx] == maker.map(|part| u32::from_le_bytes(*part))
        };
        // Its base, and what that leaves where it is 15; of Intel's family 6 the model has two parts as well.
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

    /// Returns the family of this machine.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Family {
        Family::Other
    }

    /// Says whether this machine has the instructions that the family's choices use.
    pub fn runs(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            Family::Zen3 => return std::is_x86_feature_detected!("avx2"),
            Family::Rapids => return std::is_x86_feature_detected!("avx512f"),
            Family::Other => {}
        }
        self == Family::Other
    }

    /// Returns the name used in `DDTC_FAMILY` and records.
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

    /// Choices whose instructions are missing are refused; the others hold until the next.
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
