//! Atomic builtins in C sources: which call a column is at, and the order it states.
//!
//! Compilers leave no trace of `__atomic_load_n` in the debug information but the line and the column.

use verdict_events::MemoryOrder;

/// A call of an atomic builtin or macro.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) order: Option<MemoryOrder>,
}

/// A call spreads over no more text than this.
const CALL_BYTES_MAX: usize = 1000;

/// Operations that are plain instructions in part. Those that change a value in one go are not: the instruction shows it.
const NAMES: [&str; 13] = [
    "__atomic_load_n",
    "__atomic_load",
    "__atomic_store_n",
    "__atomic_store",
    "__c11_atomic_load",
    "__c11_atomic_store",
    "atomic_load_explicit",
    "atomic_load",
    "atomic_store_explicit",
    "atomic_store",
    "atomic_flag_clear_explicit",
    "atomic_flag_clear",
    "__sync_lock_release",
];

/// The call at a column of the first line of `text`; the only one of the line where there is no column.
pub(crate) fn find(text: &str, column: Option<u32>) -> Option<Call> {
    let line = text.lines().next()?;
    let calls = calls(line);
    let chosen = match column.and_then(|column| usize::try_from(column - 1).ok()) {
        // Compilers point to the name. What they point to among the arguments is read to find what the call acts on.
        Some(column) => calls.iter().find(|(start, _)| *start == column),
        None if calls.len() == 1 => calls.first(),
        None => None,
    };
    let &(start, name) = chosen?;
    let arguments = arguments(text, start + name.len());
    Some(Call {
        order: order(name, arguments),
        name: name.to_owned(),
    })
}

/// Where each call starts in the line, and its name.
fn calls(line: &str) -> Vec<(usize, &str)> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = line.as_bytes();
    let mut calls = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let end = (at..bytes.len())
            .find(|&end| !is_word(bytes[end]))
            .unwrap_or(bytes.len());
        let word = &line[at..end];
        let called = line[end..].trim_start().starts_with('(');
        if called && NAMES.contains(&word) {
            calls.push((at, word));
        }
        at = end;
    }
    calls
}

/// The text in the brackets, which may go on in the next lines.
fn arguments(text: &str, after_name: usize) -> &str {
    let end = end_of_call(text, after_name);
    &text[after_name..end]
}

fn end_of_call(text: &str, after_name: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in text
        .bytes()
        .enumerate()
        .skip(after_name)
        .take(CALL_BYTES_MAX)
    {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return at;
        }
    }
    after_name
}

/// The last order that the arguments state; operations without one are sequentially consistent.
fn order(name: &str, arguments: &str) -> Option<MemoryOrder> {
    let explicit =
        name.starts_with("__atomic") || name.starts_with("__c11") || name.ends_with("_explicit");
    if name == "__sync_lock_release" {
        return Some(MemoryOrder::Release);
    }
    if !explicit {
        return Some(MemoryOrder::SeqCst);
    }
    let last = arguments.rsplit(',').next()?.trim();
    let word = last.rsplit("::").next()?;
    let word = word
        .trim_start_matches("memory_order_")
        .trim_start_matches("__ATOMIC_")
        .to_ascii_lowercase();
    match word.as_str() {
        "relaxed" | "0" => Some(MemoryOrder::Relaxed),
        "consume" | "acquire" | "1" | "2" => Some(MemoryOrder::Acquire),
        "release" | "3" => Some(MemoryOrder::Release),
        "acq_rel" | "4" => Some(MemoryOrder::AcqRel),
        "seq_cst" | "5" => Some(MemoryOrder::SeqCst),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, column: Option<u32>) -> Option<(String, Option<MemoryOrder>)> {
        find(text, column).map(|call| (call.name, call.order))
    }

    #[test]
    fn a_call_is_found_by_its_column() {
        let line = "  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) x = y;";
        let found = Some(("__atomic_load_n".to_owned(), Some(MemoryOrder::Acquire)));
        assert_eq!(at(line, Some(11)), found);
        for column in [3, 10, 28, 53, 55] {
            assert_eq!(at(line, Some(column)), None, "{column}");
        }
        assert_eq!(at(line, None), found);
    }

    #[test]
    fn a_call_goes_on_in_the_next_line() {
        let text = "atomic_store_explicit(&done,\n    true, memory_order_release);\n";
        let found = Some((
            "atomic_store_explicit".to_owned(),
            Some(MemoryOrder::Release),
        ));
        assert_eq!(at(text, Some(1)), found);
    }

    #[test]
    fn without_an_order_it_is_the_strongest() {
        let found = Some(("atomic_load".to_owned(), Some(MemoryOrder::SeqCst)));
        assert_eq!(at("return atomic_load(&x);", Some(8)), found);
    }

    #[test]
    fn an_order_that_is_a_variable_is_not_known() {
        let found = Some(("__atomic_load_n".to_owned(), None));
        assert_eq!(at("x = __atomic_load_n(p, how);", Some(5)), found);
    }

    #[test]
    fn two_calls_of_a_line_are_told_apart() {
        let line = "f(atomic_load(&a), atomic_load_explicit(&b, memory_order_relaxed));";
        assert_eq!(at(line, None), None);
        assert_eq!(at(line, Some(20)).unwrap().1, Some(MemoryOrder::Relaxed));
        assert_eq!(at(line, Some(3)).unwrap().1, Some(MemoryOrder::SeqCst));
    }

    #[test]
    fn names_that_contain_a_name_are_others() {
        assert_eq!(at("my_atomic_load(&x);", None), None);
        assert_eq!(at("atomic_loads(&x);", None), None);
    }
}
