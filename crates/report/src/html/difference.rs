//! What differs between the two orders: in what was written, and in what was left behind.

use verdict_findings::{OutputPiece, Verdict};

use super::markup::{Html, of_class, plain};
use super::race::{folded, stack};
use crate::plain::{name, one_line, shortened};
use crate::text::count;
use crate::words;

/// Lines of output are cut here; programs write lines of megabytes.
const LINE_CHARS_MAX: usize = 2_000;

pub(super) fn output(verdict: &Verdict) -> Html {
    let Some(difference) = &verdict.output_difference else {
        return Html::default();
    };
    let mut heading = format!(
        "{}, after {} that are the same",
        name(&difference.stream),
        count(difference.position, "byte")
    );
    if difference.only_interleaving {
        heading.push_str("; the same pieces in another order");
    }
    let mut lines = Html::default();
    for (removed, added) in pairs(&difference.primary.text, &difference.alternate.text) {
        let (removed, added) = (removed.map(shown), added.map(shown));
        let same = match (&removed, &added) {
            (Some(removed), Some(added)) => common(removed, added),
            _ => (0, 0),
        };
        if removed.is_some() && removed == added {
            lines.push(line("same", "  ", removed.as_deref(), (usize::MAX, 0)));
            continue;
        }
        lines.push(line("removed", "- ", removed.as_deref(), same));
        lines.push(line("added", "+ ", added.as_deref(), same));
    }
    let mut content = plain("h3", Html::text("Output")).and(plain("p", Html::text(&heading)));
    content.push(of_class("pre", "diff", lines));
    content.push(writer("Written as recorded at", &difference.primary));
    content.push(writer(
        "Written in the other order at",
        &difference.alternate,
    ));
    content
}

/// The lines of both sides beside each other.
fn pairs<'a>(primary: &'a str, alternate: &'a str) -> Vec<(Option<&'a str>, Option<&'a str>)> {
    let (mut first, mut second) = (primary.lines(), alternate.lines());
    std::iter::from_fn(|| match (first.next(), second.next()) {
        (None, None) => None,
        pair => Some(pair),
    })
    .collect()
}

fn shown(line: &str) -> String {
    shortened(&one_line(line), LINE_CHARS_MAX)
}

/// How many characters two lines have in common at their beginnings, and then at their ends.
fn common(a: &str, b: &str) -> (usize, usize) {
    let front = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let shorter = a.chars().count().min(b.chars().count());
    let back = a
        .chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(a, b)| a == b)
        .count();
    (front, back.min(shorter - front))
}

/// A line with what the other does not have marked.
fn line(class: &'static str, sign: &'static str, text: Option<&str>, same: (usize, usize)) -> Html {
    let Some(text) = text else {
        return Html::default();
    };
    let (front, back) = same;
    let characters: Vec<char> = text.chars().collect();
    let front = front.min(characters.len());
    let back = characters.len() - back.min(characters.len() - front);
    let piece =
        |range: std::ops::Range<usize>| Html::text(&characters[range].iter().collect::<String>());
    let mut content = Html::text(sign).and(piece(0..front));
    if front < back {
        content.push(plain("mark", piece(front..back)));
    }
    content.push(piece(back..characters.len()));
    of_class("span", class, content)
}

fn writer(heading: &str, piece: &OutputPiece) -> Html {
    if piece.stack.is_empty() {
        return Html::default();
    }
    folded(heading, stack(&piece.stack))
}

pub(super) fn state(verdict: &Verdict) -> Html {
    if verdict.state_differences.is_empty() {
        return Html::default();
    }
    let head = ["left behind", "as recorded", "in the other order"]
        .map(|heading| plain("th", Html::text(heading)));
    let rows = verdict.state_differences.iter().map(|difference| {
        let cells = [&difference.variable, &difference.old, &difference.new];
        let cells = cells.map(|text| of_class("td", "code", Html::text(&words::sentence(text))));
        plain("tr", cells.into_iter().collect())
    });
    let head = plain("thead", plain("tr", head.into_iter().collect()));
    let table = of_class("table", "state", head.and(plain("tbody", rows.collect())));
    plain("h3", Html::text("State")).and(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ends_do_not_overlap() {
        assert_eq!(common("done: 41 items", "done: 40 items"), (7, 6));
        assert_eq!(common("aa", "aaa"), (2, 0));
        assert_eq!(common("", "x"), (0, 0));
    }
}
