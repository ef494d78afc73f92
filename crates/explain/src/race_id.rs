//! Ids of races that stay the same when the program is rebuilt: with other flags, at another address, or with lines added
//! elsewhere. An id is a hash of what a person would recognise the race by: of both accesses the function, the text of
//! the line and whether it reads or writes, and the variable; not the addresses, line numbers and threads.
//!
//! Changes with: the text of one of the two lines, the name of a function or of the variable. Without debug information
//! a site is the function and the offset in it, or the module and the offset, and a rebuild may change that.

use std::collections::BTreeMap;

use verdict_findings::{Access, Race, Variable, VariableKind};

use crate::Code;

/// 12 hexadecimal digits: among a million races two are the same with a chance of 1 in 500.
pub(crate) fn of(accesses: &[Access; 2], variable: &Variable, code: &mut Code) -> String {
    let mut sides = [side(&accesses[0], code), side(&accesses[1], code)];
    // Which of the two came first is a matter of the schedule.
    sides.sort();
    let text = format!("{}\n{}\n{}", sides[0], sides[1], what(variable));
    let hash = fnv(text.as_bytes());
    format!("{:012x}", (hash >> 48 ^ hash) & 0xffff_ffff_ffff)
}

fn side(access: &Access, code: &mut Code) -> String {
    let function = access.function.as_deref().map(without_clone);
    let line = match (&access.file, access.line) {
        (Some(file), Some(line)) => code
            .trimmed_line(file, line)
            .map(|text| single_spaced(&text))
            .or_else(|| Some(file_name(file).to_owned())),
        _ => None,
    };
    let place = match (function, line) {
        (function, Some(line)) => format!("{}\t{line}", function.unwrap_or_default()),
        (Some(function), None) => function.to_owned(),
        (None, None) => format!("{}+{:#x}", file_name(&access.module), access.offset),
    };
    format!("{}\t{place}", access.access.word())
}

/// The name of what was hit; the block where it has none.
fn what(variable: &Variable) -> String {
    let name = variable.name.as_deref().unwrap_or_default();
    // Which element of an array it was depends on the input more than on the mistake.
    let name = without_indices(name);
    let kind = match variable.kind {
        VariableKind::Global => "global",
        VariableKind::Heap => "heap",
        VariableKind::Stack => "stack",
        VariableKind::ThreadLocal => "thread-local",
        VariableKind::Unknown => "",
    };
    format!("{kind} {name}")
}

fn without_indices(name: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for letter in name.chars() {
        match letter {
            '[' => {
                inside = true;
                plain.push_str("[]");
            }
            ']' => inside = false,
            _ if !inside => plain.push(letter),
            _ => {}
        }
    }
    plain
}

/// Compilers make copies of functions: `work.part.0`, `work [clone .isra.0]`.
fn without_clone(function: &str) -> &str {
    let bare = function.split(" [clone").next().unwrap_or(function);
    let marks = [".part.", ".isra.", ".constprop.", ".cold", ".llvm."];
    let cut = marks.iter().filter_map(|mark| bare.find(mark)).min();
    &bare[..cut.unwrap_or(bare.len())]
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// FNV-1a, 64 bits: the same on every machine and in every version.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Races between different instructions of the same lines, of which a rebuild may make more or fewer, are numbered in
/// the order of the instructions.
pub(crate) fn make_unique(races: &mut [Race]) {
    let mut same: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, race) in races.iter().enumerate() {
        same.entry(race.id.clone()).or_default().push(index);
    }
    for indices in same.values_mut() {
        indices.sort_by_key(|&index| sites(&races[index]));
        for (number, &index) in indices.iter().enumerate().skip(1) {
            races[index].id.push_str(&format!("-{}", number + 1));
        }
    }
}

fn sites(race: &Race) -> [u64; 2] {
    let mut sites = [race.accesses[0].offset, race.accesses[1].offset];
    sites.sort_unstable();
    sites
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::AccessKind;

    fn access(access: AccessKind, function: &str) -> Access {
        Access {
            access,
            function: Some(function.to_owned()),
            ..Access::default()
        }
    }

    fn id(first: &Access, second: &Access, name: &str) -> String {
        let variable = Variable {
            name: Some(name.to_owned()),
            ..Variable::default()
        };
        of(
            &[first.clone(), second.clone()],
            &variable,
            &mut Code::default(),
        )
    }

    #[test]
    fn it_does_not_matter_who_was_first() {
        let (read, write) = (
            access(AccessKind::Read, "get"),
            access(AccessKind::Write, "put"),
        );
        assert_eq!(id(&read, &write, "x"), id(&write, &read, "x"));
        assert_eq!(id(&read, &write, "x").len(), 12);
    }

    #[test]
    fn it_matters_what_and_where() {
        let (read, write) = (
            access(AccessKind::Read, "get"),
            access(AccessKind::Write, "put"),
        );
        let first = id(&read, &write, "x");
        assert_ne!(first, id(&read, &write, "y"));
        assert_ne!(first, id(&read, &access(AccessKind::Write, "get"), "x"));
        assert_ne!(first, id(&write, &write, "x"));
    }

    #[test]
    fn copies_and_elements_are_the_same_race() {
        let write = access(AccessKind::Write, "put");
        let copy = access(AccessKind::Write, "put.part.0");
        assert_eq!(id(&write, &write, "q[1].n"), id(&copy, &write, "q[23].n"));
    }

    /// A golden value: an id that changes with a version of verdict would forget every suppression.
    #[test]
    fn ids_are_for_ever() {
        let write = access(AccessKind::Write, "put");
        assert_eq!(id(&write, &write, "x"), "d89517101c8e");
    }
}
