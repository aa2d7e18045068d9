//! The times that were measured for one layout, and the figures that are derived from them.

use ddtc::internal::kind::Direction;

use crate::measure::{Spread, geometric_mean, median};

/// A column of the record, which has the time of one way to move the bytes. The columns of the
/// record have the order of the variants of this enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Column {
    /// The compiled kernel.
    Compiled,
    /// The interpreter of nests, which moves the bytes by the normal nest of the layout and without
    /// compiled code.
    Walk,
    /// The reference interpreter, which works by the type map.
    Interp,
    /// C loops with constant extents.
    Constant,
    /// C loops with extents that are known only at run time.
    Runtime,
    /// C loops with constant extents around a memcpy of constant length.
    Blocks,
    /// One memcpy of as many bytes as the payload has, from the start of the user buffer.
    Memcpy,
    /// The minimum time according to the model in `bound.rs`, which is computed and not measured.
    Bound,
}

impl Column {
    /// All columns.
    pub(crate) const ALL: [Column; 8] = [
        Column::Compiled,
        Column::Walk,
        Column::Interp,
        Column::Constant,
        Column::Runtime,
        Column::Blocks,
        Column::Memcpy,
        Column::Bound,
    ];

    /// Returns the name of the column in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Compiled => "compiled",
            Column::Walk => "walk",
            Column::Interp => "interp",
            Column::Constant => "loop_const",
            Column::Runtime => "loop_runtime",
            Column::Blocks => "loop_memcpy",
            Column::Memcpy => "memcpy",
            Column::Bound => "bound",
        }
    }

    /// Returns the name of the column in the legend of a picture.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Column::Compiled => "compiled",
            Column::Walk => "walk",
            Column::Interp => "interpreter",
            Column::Constant => "C loop, constant extents",
            Column::Runtime => "C loop, run-time extents",
            Column::Blocks => "C loop of memcpy",
            Column::Memcpy => "memcpy of the payload",
            Column::Bound => "bound of the model",
        }
    }
}

/// The nanoseconds of one call in each column, and `None` for a column that was not measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times([Option<Spread>; Column::ALL.len()]);

/// Result of comparing compiled code with the best C loop: whether one of them is faster at all
/// places of the buffers. The fastest and the slowest tenth of the places are left out for this, as
/// in [`Spread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Compiled code takes less time than the best C loop at all places of the buffers.
    Ahead,
    /// The times of compiled code and of the best C loop over the places of the buffers overlap, so
    /// neither of them is faster at all places.
    Even,
    /// Compiled code takes more time than the best C loop at all places of the buffers.
    Behind,
}

impl Verdict {
    /// Returns the name of the verdict in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Ahead => "ahead",
            Verdict::Even => "even",
            Verdict::Behind => "behind",
        }
    }
}

impl Times {
    /// Sets the time of a column that was measured with the buffers at one place only, or was
    /// computed.
    pub(crate) fn set(&mut self, column: Column, nanoseconds: f64) {
        self.spread(column, Spread { low: nanoseconds, middle: nanoseconds, high: nanoseconds });
    }

    /// Sets the times of a column that was measured at several places of the buffers.
    pub(crate) fn spread(&mut self, column: Column, spread: Spread) {
        self.0[column as usize] = Some(spread);
    }

    /// Returns the median time of a column.
    pub(crate) fn get(&self, column: Column) -> Option<f64> {
        self.0[column as usize].map(|spread| spread.middle)
    }

    /// Returns the median and the range of the times of a column over all places of the buffers.
    pub(crate) fn over_places(&self, column: Column) -> Option<Spread> {
        self.0[column as usize]
    }

    /// Returns the column of the best C loop: of the two styles of loops with constant extents, the
    /// one whose median time is shorter.
    pub(crate) fn best_column(&self) -> Option<Column> {
        let times = [Column::Constant, Column::Blocks].into_iter().filter_map(|c| Some((c, self.get(c)?)));
        times.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(column, _)| column)
    }

    /// Returns the time of the best C loop with constant extents.
    pub(crate) fn best_loop(&self) -> Option<f64> {
        self.get(self.best_column()?)
    }

    /// Returns the time of compiled code over that of the best C loop with constant extents.
    /// Compiled code is faster if the ratio is below 1.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.get(Column::Compiled)? / self.best_loop()?)
    }

    /// Returns whether compiled code or the best C loop is faster at all places of the buffers.
    /// Returns `None` unless both were measured at several places.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let (ours, best) = (self.over_places(Column::Compiled)?, self.over_places(self.best_column()?)?);
        if ours.low == ours.high || best.low == best.high {
            return None;
        }
        Some(match () {
            () if ours.high < best.low => Verdict::Ahead,
            () if ours.low > best.high => Verdict::Behind,
            () => Verdict::Even,
        })
    }

    /// Returns the time of `column` divided by that of compiled code.
    pub(crate) fn over_compiled(&self, column: Column) -> Option<f64> {
        Some(self.get(column)? / self.get(Column::Compiled)?)
    }
}

/// The numbers of one layout.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Name of the layout, with the suffix of its size.
    pub(crate) name: String,
    /// Number of bytes of all instances.
    pub(crate) payload: u64,
    /// Short text by which the engine says how it moves the bytes.
    pub(crate) schedule: String,
    /// Microseconds of a commit that compiles both directions. `None` if it was not measured.
    pub(crate) commit: Option<f64>,
    /// Times of pack and of unpack.
    pub(crate) times: [Times; 2],
}

impl Measured {
    /// Returns the times of one direction.
    pub(crate) fn times_of(&self, direction: Direction) -> &Times {
        &self.times[direction as usize]
    }

    /// Returns the bandwidth of a column in GB (10^9 bytes) per second.
    pub(crate) fn bandwidth(&self, direction: Direction, column: Column) -> Option<f64> {
        Some(self.payload as f64 / self.times_of(direction).get(column)?)
    }

    /// Returns the number of packs after which the commit has paid for itself in comparison with
    /// interpreting the nest: the time of the commit over the time that one pack saves. Returns
    /// `None` if it never does.
    pub(crate) fn break_even(&self) -> Option<f64> {
        let pack = self.times_of(Direction::Pack);
        let saved = pack.get(Column::Walk)? - pack.get(Column::Compiled)?;
        if saved > 0.0 { Some((self.commit? * 1e3 / saved).ceil()) } else { None }
    }

    /// Returns the name of the layout without the suffix of its size.
    pub(crate) fn family(&self) -> &str {
        self.name.rsplit_once('.').map_or(&self.name, |(family, _)| family)
    }
}

/// Returns the geometric mean over `rows` of the time of compiled code relative to that of the best
/// C loop.
pub(crate) fn mean_ratio<'a>(rows: impl IntoIterator<Item = &'a Measured>, direction: Direction) -> f64 {
    geometric_mean(rows.into_iter().filter_map(|m| m.times_of(direction).ratio()))
}

/// Joins several runs of the same measurement: each number in the returned rows is the median over
/// the runs. All runs must have the same rows in the same order.
pub(crate) fn median_of_runs(mut runs: Vec<Vec<Measured>>) -> Vec<Measured> {
    let Some(mut rows) = runs.pop() else { return Vec::new() };
    for (i, row) in rows.iter_mut().enumerate() {
        let others = |get: &dyn Fn(&Measured) -> Option<f64>| -> Vec<f64> {
            runs.iter().filter_map(|run| get(run.get(i)?)).collect()
        };
        let over = |own: f64, get: &dyn Fn(&Measured) -> Option<f64>| {
            let mut all = others(get);
            all.push(own);
            median(&mut all)
        };
        row.commit = row.commit.map(|own| over(own, &|m| m.commit));
        for direction in Direction::BOTH {
            for column in Column::ALL {
                let Some(own) = row.times_of(direction).over_places(column) else { continue };
                let spread_of = |m: &Measured| m.times_of(direction).over_places(column);
                let joined = Spread {
                    low: over(own.low, &|m| Some(spread_of(m)?.low)),
                    middle: over(own.middle, &|m| Some(spread_of(m)?.middle)),
                    high: over(own.high, &|m| Some(spread_of(m)?.high)),
                };
                row.times[direction as usize].spread(column, joined);
            }
        }
    }
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a row with round numbers: 1000 bytes, pack in 100 ns compiled, 200 ns interpreted,
    /// and 125 and 150 ns by C loops, and a commit of 10 us.
    pub(crate) fn sample(name: &str) -> Measured {
        let mut pack = Times::default();
        pack.set(Column::Compiled, 100.0);
        pack.set(Column::Walk, 200.0);
        pack.set(Column::Constant, 150.0);
        pack.set(Column::Blocks, 125.0);
        let unpack = pack.clone();
        Measured {
            name: name.into(),
            payload: 1000,
            schedule: "s, t".into(),
            commit: Some(10.0),
            times: [pack, unpack],
        }
    }

    #[test]
    fn derived_figures_by_hand() {
        let m = sample("vec_8B.S");
        assert_eq!(m.family(), "vec_8B");
        assert_eq!(m.times_of(Direction::Pack).ratio(), Some(0.8));
        assert_eq!(m.bandwidth(Direction::Pack, Column::Walk), Some(5.0));
        assert_eq!(m.bandwidth(Direction::Pack, Column::Interp), None);
        assert_eq!(m.break_even(), Some(100.0));
    }

    #[test]
    fn a_verdict_needs_places_and_spreads_apart() {
        let mut times = sample("x").times[0].clone();
        assert_eq!(times.verdict(), None);
        let spread = |low, high| Spread { low, middle: (low + high) / 2.0, high };
        times.spread(Column::Constant, spread(120.0, 130.0));
        times.spread(Column::Blocks, spread(110.0, 115.0));
        for ((low, high), verdict) in [
            ((90.0, 109.0), Verdict::Ahead),
            ((90.0, 111.0), Verdict::Even),
            ((114.0, 140.0), Verdict::Even),
            ((116.0, 118.0), Verdict::Behind),
        ] {
            times.spread(Column::Compiled, spread(low, high));
            assert_eq!(times.verdict(), Some(verdict), "{low} {high}");
        }
    }

    #[test]
    fn runs_are_joined_by_figure() {
        let (mut a, mut b, mut c) = (sample("x"), sample("x"), sample("x"));
        b.times[0].set(Column::Walk, 300.0);
        c.times[0].set(Column::Walk, 400.0);
        (a.commit, b.commit) = (None, Some(1.0));
        let rows = median_of_runs(vec![vec![a], vec![b], vec![c]]);
        assert_eq!(rows[0].times_of(Direction::Pack).get(Column::Walk), Some(300.0));
        assert_eq!(rows[0].commit, Some(5.5));
        assert_eq!(rows[0].times_of(Direction::Unpack).get(Column::Interp), None);
    }
}
