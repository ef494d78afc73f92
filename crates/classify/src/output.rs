//! Do two runs say the same?

use verdict_protocol::{CallStack, Exploration, OutputPiece, OutputPlace};

/// The first place where two outputs differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputDifference {
    /// 1 is standard output, 2 standard error.
    pub stream: u32,
    /// Bytes of that stream before it.
    pub position: u64,
    /// What the primary says from there.
    pub primary: Vec<u8>,
    /// What the alternate says from there.
    pub alternate: Vec<u8>,
    /// Both say the same lines, in another order.
    pub only_interleaving: bool,
    /// Where those stood who wrote what differs: in the primary and in the alternate.
    pub writers: [Option<Box<CallStack>>; 2],
}

impl OutputDifference {
    /// The byte that differs, if it was kept.
    pub(crate) fn place(&self) -> Option<OutputPlace> {
        let known = !self.primary.is_empty() || !self.alternate.is_empty();
        known.then_some(OutputPlace {
            stream: self.stream,
            position: self.position,
        })
    }
}

/// Bytes shown of each side.
const SHOWN: usize = 80;

/// The first difference between what two runs said on a stream; `None` if there is none.
pub(crate) fn difference(
    primary: &Exploration,
    alternate: &Exploration,
) -> Option<OutputDifference> {
    let found = [1, 2]
        .into_iter()
        .find_map(|stream| on_stream(stream, &primary.output, &alternate.output));
    let hashes_differ = primary.output_hash != alternate.output_hash
        && (primary.output_bytes != stored(&primary.output)
            || alternate.output_bytes != stored(&alternate.output));
    // Too much to be kept, and different only behind what was.
    let behind = hashes_differ.then(|| OutputDifference {
        stream: 1,
        position: stored(&primary.output),
        primary: Vec::new(),
        alternate: Vec::new(),
        only_interleaving: false,
        writers: [None, None],
    });
    found.or(behind)
}

fn stored(pieces: &[OutputPiece]) -> u64 {
    pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
}

fn on_stream(
    stream: u32,
    primary: &[OutputPiece],
    alternate: &[OutputPiece],
) -> Option<OutputDifference> {
    let said = |pieces: &[OutputPiece]| -> Vec<u8> {
        pieces
            .iter()
            .filter(|piece| piece.stream == stream)
            .flat_map(|piece| piece.bytes.iter().copied())
            .collect()
    };
    let (a, b) = (said(primary), said(alternate));
    if a == b {
        return None;
    }
    let common = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    // From the start of the line, so that it can be understood.
    let start = a[..common]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let from = |bytes: &[u8]| bytes[start..].iter().copied().take(SHOWN).collect();
    Some(OutputDifference {
        stream,
        position: common as u64,
        primary: from(&a),
        alternate: from(&b),
        only_interleaving: sorted_lines(&a) == sorted_lines(&b),
        writers: [None, None],
    })
}

fn sorted_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Vec<OutputPiece> {
        vec![OutputPiece {
            stream: 1,
            bytes: text.as_bytes().to_vec(),
        }]
    }

    #[test]
    fn the_line_with_the_first_difference_is_shown() {
        let found = on_stream(1, &piece("one\ntotal 5\n"), &piece("one\ntotal 7\n")).unwrap();
        assert_eq!(found.position, 10);
        assert_eq!(found.primary, b"total 5\n");
        assert!(!found.only_interleaving);
        assert!(on_stream(1, &piece("same"), &piece("same")).is_none());
    }

    #[test]
    fn whole_lines_in_another_order_are_told_apart() {
        let found = on_stream(1, &piece("a\nb\n"), &piece("b\na\n")).unwrap();
        assert!(found.only_interleaving);
    }
}
