//! Optimising compilers give the last load of a function the place of its closing brace: `return x;` is then at `}`. Nobody
//! would look there, so such an instruction is given the line before, in the order of the code.

use std::path::Path;

use crate::debug::Debug;
use crate::location::Source;
use crate::source_text::SourceTexts;

/// Leaves everything alone that is not at a brace.
pub(crate) fn correct(debug: &Debug, texts: &mut SourceTexts, address: u64, source: &mut Source) {
    let Some(line) = source.line else { return };
    let text = texts.line(Path::new(&source.file), line);
    if text.is_some_and(|text| text.trim() == "}")
        && let Some((before, column)) = line_before(debug, address, line)
    {
        source.line = Some(before);
        source.column = column;
    }
}

struct Row {
    address: u64,
    file: u64,
    line: u32,
    column: Option<u32>,
}

/// The last line of the same file at or before an address that is above `brace`.
fn line_before(debug: &Debug, address: u64, brace: u32) -> Option<(u32, Option<u32>)> {
    let units = debug.units();
    let unit = units.skeleton(units.of_code(address)?)?;
    let mut rows = unit.line_program?.rows();
    let mut before: Vec<Row> = Vec::new();
    while let Ok(Some((_, row))) = rows.next_row() {
        if row.end_sequence() {
            let ours = before.first().is_some_and(|first| first.address <= address);
            if ours && address < row.address() {
                break;
            }
            before.clear();
            continue;
        }
        // What no line is behind still ends what is before it.
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        before.push(Row {
            address: row.address(),
            file: row.file_index(),
            line: line.unwrap_or(u32::MAX),
            column: match row.column() {
                gimli::ColumnType::LeftEdge => None,
                gimli::ColumnType::Column(column) => u32::try_from(column.get()).ok(),
            },
        });
    }
    before.retain(|row| row.address <= address);
    let file = before.last().filter(|row| row.line == brace)?.file;
    let found = before
        .iter()
        .rev()
        .find(|row| row.file == file && row.line < brace)?;
    Some((found.line, found.column))
}
