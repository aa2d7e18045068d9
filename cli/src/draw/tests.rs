//! Tests of whole pictures. Some compare coordinates that were computed by hand. For every entry of
//! the corpus of datatypes, a test checks the size of the picture and the number of shapes in it.

use super::fold::Fold;
use super::map::Map;
use super::scene::{Paint, Scene, Shape};
use super::{bins, chars, is_svg, picture, svg};

fn scene(text: &str, count: Option<u64>) -> Scene {
    let (t, n) = ddtc::internal::corpus::asked(text).unwrap();
    let map = Map::new(&t, count.unwrap_or(n)).unwrap();
    let fold = Fold::new(&map, None, picture::LINES);
    picture::scene(&map, &fold, text)
}

/// Returns the rectangles of packed bytes that have a hover text. The result has four values for
/// each rectangle: its x and y coordinates, its width, and its hover text.
fn blocks(scene: &Scene) -> Vec<(f64, f64, f64, &str)> {
    let all = scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Rect { x, y, w, fill: Paint::Scale(_), hover, .. } if !hover.is_empty() => {
            Some((*x, *y, *w, &hover[..]))
        }
        _ => None,
    });
    all.collect()
}

fn words(scene: &Scene) -> Vec<&str> {
    let all = scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Words { text, .. } => Some(&text[..]),
        _ => None,
    });
    all.collect()
}

#[test]
fn a_vector_by_hand() {
    // Rows of 64 B are 720 units wide, so 16 B are 180, minus the space between blocks.
    let scene = scene("vector(4, 2, 8, double)", None);
    let all = blocks(&scene);
    assert_eq!(all.len(), 4);
    for (i, (x, y, w, hover)) in all.iter().enumerate() {
        assert!((x - all[0].0).abs() < 1e-9 && (w - 179.2).abs() < 1e-9, "{x} {w}");
        assert!((y - all[0].1 - 32.0 * i as f64).abs() < 1e-9, "{y}");
        let expected =
            format!("block {i}: displacement {}, 16 B (2 double), packed from byte {} on", 64 * i, 16 * i);
        assert_eq!(*hover, expected);
    }
    let words = words(&scene);
    for text in [
        "vector(4, 2, 8, double)",
        "+0 B",
        "+64",
        "192",
        "lb = true lb = 0",
        "ub = true ub = 208",
        "packed byte 0",
        "63",
    ] {
        assert!(words.contains(&text), "{text}: {words:?}");
    }
}

#[test]
fn bounds_instances_and_overlap_are_marked() {
    let one = scene("resized(-8, 64, struct([1,1,3], [0,8,16], [int,double,float]))", Some(3));
    let words = words(&one);
    for text in ["lb = -8", "true lb = 0", "true ub = 28", "ub = 56", "instance 1 at 56", "instance 2 at 120"]
    {
        assert!(words.contains(&text), "{text}: {words:?}");
    }
    // Labels do not touch.
    let mut labels: Vec<f64> = one
        .shapes
        .iter()
        .filter_map(|s| match s {
            Shape::Words { y, paint: Paint::Bound, .. } => Some(*y),
            _ => None,
        })
        .collect();
    labels.sort_unstable_by(f64::total_cmp);
    assert!(labels.windows(2).all(|w| w[1] - w[0] >= 12.9), "{labels:?}");
    let shared = |scene: &Scene| {
        let bars = |s: &&Shape| matches!(s, Shape::Rect { hover, .. } if hover.contains("share"));
        scene.shapes.iter().filter(bars).count()
    };
    assert_eq!(shared(&scene("hvector(5, 4, 24, double)", None)), 4);
    assert_eq!(shared(&one), 0);
}

#[test]
fn what_is_far_away_or_empty_has_a_picture() {
    let far = scene("hindexed([8,8], [0,1099511627776], double)", None);
    assert!(words(&far).iter().any(|text| text.contains("without a byte")));
    assert_eq!(blocks(&far).len(), 2);
    for text in
        ["contiguous(0, int)", "struct([1,1],[-16,48],[lb,ub])", "resized(0, -32, int)", "resized(5, 0, int)"]
    {
        for count in [0, 1, 3] {
            let scene = scene(text, Some(count));
            assert!(scene.width < 2000.0 && scene.height < 1000.0, "{text}");
        }
    }
}

#[test]
fn every_entry_of_the_corpus_is_drawn() {
    for entry in ddtc::internal::corpus::application().into_iter().chain(ddtc::internal::corpus::corner()) {
        let name = &entry.name;
        let map = Map::new(&entry.datatype, entry.count).unwrap();
        assert_eq!(map.pieces.iter().map(|p| p.len).sum::<i128>(), map.bytes, "{name}");
        let size = i128::from(entry.datatype.size()) * i128::from(entry.count);
        let fold = Fold::new(&map, None, picture::LINES);
        let bins = bins::Bins::new(&map, &fold, 72);
        let cells = (0..fold.lines.len()).flat_map(|l| (0..bins.columns).map(move |c| (l, c)));
        assert_eq!(cells.map(|(l, c)| bins.cell(l, c).bytes).sum::<i128>(), size, "{name}");
        let scene = picture::scene(&map, &fold, name);
        assert!(scene.shapes.len() <= picture::MAX_SHAPES, "{name}: {}", scene.shapes.len());
        assert!(size == 0 || !blocks(&scene).is_empty(), "{name}");
        assert!(scene.height < 1200.0 && scene.width < 1600.0, "{name}: {} {}", scene.width, scene.height);
        let text = svg::write(&scene, None);
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(document.root_element().tag_name().name(), "svg");
        assert!(!text.contains("NaN") && !text.contains("inf\""), "{name}");
        let terminal = chars::Terminal { columns: 80, ascii: true, colour: false };
        assert!(chars::write(&map, name, None, terminal).lines().count() < 70, "{name}");
    }
}

#[test]
fn endings_are_those_of_pictures() {
    assert_eq!(is_svg("a/b.SVG".as_ref()), Ok(()));
    for name in ["b", "b.png", ".svg", "svg"] {
        let error = is_svg(name.as_ref()).unwrap_err();
        assert!(error.contains(name) && error.contains("must end in .svg"), "{error}");
    }
}

#[test]
fn random_datatypes_have_pictures() {
    let mut drawn = 0;
    for seed in 0..400 {
        let mut choices = ddtc::internal::fuzzing::Choices::from_seed(seed);
        let t = ddtc::internal::fuzzing::datatype(&mut choices, &ddtc::internal::fuzzing::Budget::default());
        let count = choices.below(5);
        let Ok(map) = Map::new(&t, count) else { continue };
        let width = choices.chance(2).then(|| 1 + choices.below(100));
        let fold = Fold::new(&map, width, picture::LINES);
        for (lo, hi) in (0..fold.lines.len()).filter_map(|line| fold.memory(line)) {
            assert!(lo < hi && fold.line(lo) == fold.line(hi - 1), "{seed}: {t}");
        }
        let bins = bins::Bins::new(&map, &fold, 20);
        let cells = (0..fold.lines.len()).flat_map(|l| (0..bins.columns).map(move |c| (l, c)));
        assert_eq!(cells.map(|(l, c)| bins.cell(l, c).bytes).sum::<i128>(), map.bytes, "{seed}: {t}");
        let scene = picture::scene(&map, &fold, &t.to_string());
        assert!(scene.shapes.len() <= picture::MAX_SHAPES, "{seed}: {t}");
        let places = scene.shapes.iter().filter_map(|shape| match shape {
            Shape::Rect { x, y, w, h, .. } => Some([*x, *y, x + w, y + h]),
            _ => None,
        });
        for [x0, y0, x1, y1] in places {
            let inside = x0 >= 0.0 && y0 >= 0.0 && x1 <= scene.width && y1 <= scene.height;
            assert!(inside, "{seed}: {t}: {x0} {y0} {x1} {y1}");
        }
        assert!(roxmltree::Document::parse(&svg::write(&scene, Some(true))).is_ok(), "{seed}: {t}");
        drawn += usize::from(!blocks(&scene).is_empty());
    }
    assert!(drawn > 200, "{drawn}");
}
