//! The GPU on which this program runs, and by which target speeds it is judged there.

/// A kind of GPU. The target speeds of [`ROWS`](crate::rows::ROWS) are those for an H100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Card {
    H100,
    H200,
    /// Any other GPU. There are no targets for it.
    Other,
}

/// Amount by which a target for an H200 is lower than that for an H100. Both are shares of a
/// reference speed on the same GPU. The targets were chosen for an H100, and this is the loss that
/// is accepted on an H200 (`docs/GPU.md`, "Targets").
const LOWER: f64 = 0.08;

impl Card {
    /// Returns the kind of the GPU that the driver calls `name`, such as "NVIDIA H100 80GB HBM3".
    pub(crate) fn named(name: &str) -> Card {
        let has = |word| name.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == word);
        match (has("H100"), has("H200")) {
            (true, _) => Card::H100,
            (_, true) => Card::H200,
            _ => Card::Other,
        }
    }

    /// Returns the target speed on this GPU of a transfer whose target is `aim` on an H100.
    pub(crate) fn aim(self, aim: f64) -> Option<f64> {
        match self {
            Card::H100 => Some(aim),
            Card::H200 => Some(aim - LOWER),
            Card::Other => None,
        }
    }

    /// Returns the target speed on this GPU of a transfer between device memory and host memory.
    /// The bus limits its speed, and the copy kernel with which it is compared, on an H200 as on an
    /// H100.
    pub(crate) fn aim_over_the_bus(self, aim: f64) -> Option<f64> {
        (self != Card::Other).then_some(aim)
    }

    /// Returns a sentence that says which target speeds hold on this GPU.
    pub(crate) fn rule(self) -> String {
        match self {
            Card::H100 => "The aims are those for an H100.".to_owned(),
            Card::H200 => format!(
                "The aims of speeds are {LOWER:.2} lower than those for an H100, but for pinned memory."
            ),
            Card::Other => "There are aims only for an H100 and an H200: only figures follow.".to_owned(),
        }
    }
}

/// Returns the text that says whether the speed `share` reaches the target `aim`. Both are
/// fractions of the speed of `of`. The text is empty if there is no target.
pub(crate) fn verdict(share: f64, aim: Option<f64>, of: &str) -> String {
    let Some(aim) = aim else { return String::new() };
    let reached = if share >= aim { "reached" } else { "MISSED" };
    format!("{share:.2} of {of}, aim {aim:.2}: {reached}")
}

/// Returns the number of the driver, such as "580.95.05". `text` is the content of the file
/// `/proc/driver/nvidia/version`, which the driver's kernel module provides.
pub(crate) fn driver_number(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_decides_about_the_aims() {
        for (name, card, aim) in [
            ("NVIDIA H100 80GB HBM3", Card::H100, Some("0.92")),
            ("NVIDIA H100 PCIe", Card::H100, Some("0.92")),
            ("NVIDIA H200", Card::H200, Some("0.84")),
            ("NVIDIA GH200 480GB", Card::Other, None),
            ("NVIDIA A100-SXM4-80GB", Card::Other, None),
            ("a stand-in", Card::Other, None),
        ] {
            assert_eq!(Card::named(name), card, "{name}");
            assert_eq!(card.aim(0.92).map(|aim| format!("{aim:.2}")).as_deref(), aim, "{name}");
        }
    }

    #[test]
    fn verdicts_compare_with_the_aim() {
        assert_eq!(verdict(0.85, Card::H200.aim(0.92), "the bound"), "0.85 of the bound, aim 0.84: reached");
        assert_eq!(verdict(0.85, Card::H100.aim(0.92), "the bound"), "0.85 of the bound, aim 0.92: MISSED");
        assert_eq!(verdict(0.85, Card::Other.aim(0.92), "the bound"), "");
    }

    #[test]
    fn the_number_of_the_driver_is_found() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\nGCC version:  gcc version 12.3.0\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build  (dvs-builder@U22)\n";
        assert_eq!(driver_number(closed), Some("580.95.05"));
        assert_eq!(driver_number(open), Some("570.172.08"));
        assert_eq!(driver_number("GCC version:  gcc version 12.3.0\n"), None);
    }
}
