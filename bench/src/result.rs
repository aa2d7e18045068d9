//! Measured figures of one layout, and what is derived from them.

use ddtc::kind::Direction;

use crate::measure::geometric_mean;

/// What is timed, in the order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Column {
    /// The compiled kernel.
    Compiled,
    /// The walker on the normal nest.
    Walk,
    /// The interpreter of the type map.
    Interp,
    /// C loops of constant extents.
    Constant,
    /// C loops of run-time extents.
    Runtime,
    /// C loops of constant extents around a memcpy of constant length.
    Blocks,
    /// One memcpy of as many bytes as the payload, from the start of the user buffer.
    Memcpy,
    /// Not measured: the yardstick of `bound.rs`.
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

    /// Name in records.
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

    /// Name for readers.
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

/// Nanoseconds of one call by column; `None` where a column was not measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times([Option<f64>; Column::ALL.len()]);

impl Times {
    /// Sets a column.
    pub(crate) fn set(&mut self, column: Column, nanoseconds: f64) {
        self.0[column as usize] = Some(nanoseconds);
    }

    /// A column.
    pub(crate) fn get(&self, column: Column) -> Option<f64> {
        self.0[column as usize]
    }

    /// The best C loop of constant extents.
    pub(crate) fn best_loop(&self) -> Option<f64> {
        let times = [Column::Constant, Column::Blocks].into_iter().filter_map(|c| self.get(c));
        times.min_by(f64::total_cmp)
    }

    /// Time of compiled code over that of the best C loop of constant extents: below 1, compiled code wins.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.get(Column::Compiled)? / self.best_loop()?)
    }

    /// Time of `column` over that of compiled code.
    pub(crate) fn over_compiled(&self, column: Column) -> Option<f64> {
        Some(self.get(column)? / self.get(Column::Compiled)?)
    }
}

/// One layout's figures.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Name with the suffix of its size.
    pub(crate) name: String,
    /// Bytes of all instances.
    pub(crate) payload: u64,
    /// What schedule was chosen, in the engine's words.
    pub(crate) schedule: String,
    /// Microseconds of a commit that compiles both directions; `None` if not measured.
    pub(crate) commit: Option<f64>,
    /// Pack, unpack.
    pub(crate) times: [Times; 2],
}

impl Measured {
    /// Figures of one direction.
    pub(crate) fn of(&self, direction: Direction) -> &Times {
        &self.times[direction as usize]
    }

    /// GB (10^9 bytes) per second of a column.
    pub(crate) fn bandwidth(&self, direction: Direction, column: Column) -> Option<f64> {
        Some(self.payload as f64 / self.of(direction).get(column)?)
    }

    /// Packs until the commit has paid, against walking: commit time over the time that one pack saves. `None` if it
    /// never does.
    pub(crate) fn break_even(&self) -> Option<f64> {
        let pack = self.of(Direction::Pack);
        let saved = pack.get(Column::Walk)? - pack.get(Column::Compiled)?;
        if saved > 0.0 { Some((self.commit? * 1e3 / saved).ceil()) } else { None }
    }

    /// The name without its size.
    pub(crate) fn family(&self) -> &str {
        self.name.rsplit_once('.').map_or(&self.name, |(family, _)| family)
    }
}

/// The geometric mean over `rows` of the ratio to the best C loop.
pub(crate) fn mean_ratio<'a>(rows: impl IntoIterator<Item = &'a Measured>, direction: Direction) -> f64 {
    geometric_mean(rows.into_iter().filter_map(|m| m.of(direction).ratio()))
}

/// The rows of `runs` (equal rows in equal order) with the median of each figure.
pub(crate) fn median_of_runs(mut runs: Vec<Vec<Measured>>) -> Vec<Measured> {
    let Some(mut rows) = runs.pop() else { return Vec::new() };
    for (i, row) in rows.iter_mut().enumerate() {
        let over = |own: Option<f64>, get: &dyn Fn(&Measured) -> Option<f64>| {
            let mut all: Vec<f64> = runs.iter().filter_map(|r| r.get(i).and_then(get)).chain(own).collect();
            if all.is_empty() { None } else { Some(super::measure::median(&mut all)) }
        };
        row.commit = over(row.commit, &|m| m.commit);
        for direction in Direction::BOTH {
            for column in Column::ALL {
                let own = row.of(direction).get(column);
                row.times[direction as usize].0[column as usize] =
                    over(own, &|m| m.of(direction).get(column));
            }
        }
    }
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row with round figures: 1000 B; pack 100 ns compiled, 200 walk, 125 and 150 C loops; 10 us commit.
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
        assert_eq!(m.of(Direction::Pack).ratio(), Some(0.8));
        assert_eq!(m.bandwidth(Direction::Pack, Column::Walk), Some(5.0));
        assert_eq!(m.bandwidth(Direction::Pack, Column::Interp), None);
        assert_eq!(m.break_even(), Some(100.0));
    }

    #[test]
    fn runs_are_joined_by_figure() {
        let (a, mut b, mut c) = (sample("x"), sample("x"), sample("x"));
        b.times[0].set(Column::Walk, 300.0);
        c.times[0].set(Column::Walk, 400.0);
        b.commit = Some(1.0);
        c.commit = None;
        let rows = median_of_runs(vec![vec![a], vec![b], vec![c]]);
        assert_eq!(rows[0].of(Direction::Pack).get(Column::Walk), Some(300.0));
        assert_eq!(rows[0].commit, Some(5.5));
        assert_eq!(rows[0].of(Direction::Unpack).get(Column::Interp), None);
    }
}
