//! Letters as lines, for writers of pixels: the same on every machine, with no font to look for.
//!
//! A letter stands on a grid of 0 to 8 across and 0 to 13 down: capitals from 0 to 10, small letters from 3, tails to 13.

/// Height of a capital on the grid; the grid's unit is `SIZE / 14` of letters of size `SIZE`.
const UNITS: f64 = 14.0;
const BASE: f64 = 10.0;
/// Between letters.
const SPACE: f64 = 2.3;

/// From `!` to `~`: lines apart by a space, each a row of points, two hexadecimal digits a point.
const LETTERS: [&str; 94] = [
    "0007 090a",
    "0003 2023",
    "200a 604a 0464 0767",
    "6240200204254566684a2a08 303b",
    "0020220200 600a 48686a4a48",
    "6a1311203041420508 081a3a66",
    "0003",
    "2003092c",
    "0023290c",
    "3238 0367 0763",
    "3339 0666",
    "191a0c",
    "0646",
    "090a",
    "600b",
    "203052583a2a080220",
    "12303a",
    "02203052540a5a",
    "01203051533515 355758 583a2a09",
    "400757 404a",
    "5000043456583a2a09",
    "41302002082a3a5856342406",
    "00501a",
    "250302203052533525 2507082a3a585735 3525",
    "092a3a5852302002042636 3654",
    "0304 090a",
    "1314 191a0c",
    "530659",
    "0454 0858",
    "035609",
    "02203052532527 292a",
    "472724444657666240200208 082a5a",
    "0a306a 1757",
    "0a004061634505 4567694a0a",
    "62402002082a4a68",
    "000a3a67633000",
    "60000a6a 0545",
    "60000a 0545",
    "62402002082a4a686535",
    "000a 606a 0565",
    "000a",
    "50583a1a08",
    "000a 6006 256a",
    "000a5a",
    "0a0036606a",
    "0a006a60",
    "204062684a2a080220",
    "0a004061644505",
    "204062684a2a080220 476b",
    "0a004061644505 356a",
    "6240200204254566684a2a08",
    "0060 303a",
    "00082a4a6860",
    "003a60",
    "001a335a60",
    "006a 600a",
    "003560 353a",
    "00600a6a",
    "20000c2c",
    "005b",
    "00202c0c",
    "032043",
    "0c6c",
    "0022",
    "535a 55332305082a3a58",
    "000a 05233355583a2a08",
    "54332305082a3a59",
    "505a 55332305082a3a58",
    "065655332305082a3a59",
    "4030121a 0333",
    "535b3d2d0c 55332305082a3a58",
    "000a 052333555a",
    "030a 0001",
    "232c1d0d 2021",
    "000a 4307 254a",
    "000a",
    "030a 052333444a 45637384 848a",
    "030a 052333555a",
    "23335558 583a2a080523",
    "030d 05233355583a2a08",
    "535d 55332305082a3a58",
    "030a 052333",
    "5443130405164657594a1a09",
    "10182a3a 0333",
    "03082a3a58 535a",
    "032a43",
    "031a355a63",
    "034a 430a",
    "032a 432a1d0d",
    "03430a4a",
    "2011150617 171b2c",
    "000c",
    "0011152617 171b0c",
    "06153645",
];

/// A letter: its width, and its lines.
fn letter(c: char) -> (f64, Vec<Vec<(f64, f64)>>) {
    let Some(text) = (c as usize).checked_sub('!' as usize).and_then(|i| LETTERS.get(i)) else {
        return (3.0, Vec::new());
    };
    let digits =
        |line: &str| -> Vec<f64> { line.chars().filter_map(|c| c.to_digit(16)).map(f64::from).collect() };
    let points = |line: &str| digits(line).chunks_exact(2).map(|p| (p[0], p[1])).collect();
    let lines: Vec<Vec<(f64, f64)>> = text.split(' ').map(points).collect();
    let width = lines.iter().flatten().map(|(x, _)| *x).fold(0.0, f64::max);
    (width, lines)
}

/// The width of `text` in letters of `size`.
pub(crate) fn breadth(text: &str, size: f64) -> f64 {
    let units: f64 = text.chars().map(|c| letter(c).0 + SPACE).sum();
    (units - SPACE).max(0.0) * size / UNITS
}

/// The lines of `text` in letters of `size`, from `x` on, standing on `y`.
pub(crate) fn lines(text: &str, size: f64, (x, y): (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let unit = size / UNITS;
    let mut at = 0.0;
    let mut all = Vec::new();
    for c in text.chars() {
        let (width, lines) = letter(c);
        let place = |&(px, py): &(f64, f64)| (x + (at + px) * unit, y + (py - BASE) * unit);
        all.extend(lines.iter().map(|line| line.iter().map(place).collect::<Vec<_>>()));
        at += width + SPACE;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_drawn_on_the_grid() {
        let mut seen = Vec::new();
        for c in '!'..='~' {
            let (width, lines) = letter(c);
            assert!(width <= 8.0 && !lines.is_empty(), "{c}");
            assert!(LETTERS[c as usize - 33].split(' ').all(|line| line.len() % 2 == 0), "{c}");
            for line in &lines {
                assert!(line.len() > 1, "{c}: {lines:?}");
                assert!(line.iter().all(|(x, y)| (0.0..=8.0).contains(x) && (0.0..=13.0).contains(y)), "{c}");
            }
            // An I and an l are alike, as in other fonts.
            assert!(c == 'l' || !seen.contains(&lines), "{c}");
            seen.push(lines);
        }
        assert_eq!(letter('1'), (3.0, vec![vec![(1.0, 2.0), (3.0, 0.0), (3.0, 10.0)]]));
        assert!(letter(' ').1.is_empty());
    }

    #[test]
    fn words_stand_on_their_line() {
        assert_eq!(lines("l", 14.0, (5.0, 20.0)), [[(5.0, 10.0), (5.0, 20.0)]]);
        assert_eq!(breadth("ll", 14.0), SPACE);
        assert!(breadth("displacement", 10.5) <= super::super::scene::breadth("displacement", 10.5) * 1.15);
    }
}
