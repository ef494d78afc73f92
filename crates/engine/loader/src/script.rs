//! `#!` lines, read as the kernel reads them (`binfmt_script`).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a `#!` line asks for.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct ScriptLine {
    pub interpreter: Vec<u8>,
    /// Everything after the interpreter, as one argument.
    pub argument: Option<Vec<u8>>,
}

pub(crate) fn is_script(head: &[u8]) -> bool {
    head.starts_with(b"#!")
}

/// Reads the line. `head` is the beginning of the file, cut where the kernel cuts it. None where the line names no
/// interpreter, or only part of one.
pub(crate) fn parse(head: &[u8]) -> Option<ScriptLine> {
    let body = head.strip_prefix(b"#!")?;
    // The kernel's buffer ends in zero bytes when the file is short, and a zero byte ends a name as well as a line.
    let line_end = body.iter().position(|&b| b == b'\n' || b == 0);
    let complete = line_end.is_some() || head.len() < KERNEL_HEAD;
    let line = trim(&body[..line_end.unwrap_or(body.len())]);
    let name_end = line.iter().position(|&b| is_blank(b));
    if name_end.is_none() && !complete {
        return None;
    }
    let (interpreter, rest) = line.split_at(name_end.unwrap_or(line.len()));
    if interpreter.is_empty() {
        return None;
    }
    let argument = trim(rest);
    Some(ScriptLine {
        interpreter: interpreter.to_vec(),
        argument: (!argument.is_empty()).then(|| argument.to_vec()),
    })
}

/// The kernel's BINPRM_BUF_SIZE.
const KERNEL_HEAD: usize = 256;

/// The argument vector the interpreter gets: itself, its argument, the script, and the script's own arguments.
pub(crate) fn rewrite_argv(line: ScriptLine, script: &Path, argv: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut rewritten = vec![line.interpreter];
    rewritten.extend(line.argument);
    rewritten.push(script.as_os_str().as_bytes().to_vec());
    rewritten.extend(argv.into_iter().skip(1));
    rewritten
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|&b| !is_blank(b));
    let end = bytes.iter().rposition(|&b| !is_blank(b));
    match (start, end) {
        (Some(start), Some(end)) => &bytes[start..=end],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(interpreter: &str, argument: Option<&str>) -> Option<ScriptLine> {
        Some(ScriptLine {
            interpreter: interpreter.into(),
            argument: argument.map(Into::into),
        })
    }

    #[test]
    fn the_argument_is_everything_after_the_interpreter() {
        assert_eq!(parse(b"#!/bin/sh\n"), line("/bin/sh", None));
        assert_eq!(
            parse(b"#! \t/bin/sh  -e -u \t\nrest"),
            line("/bin/sh", Some("-e -u"))
        );
        assert_eq!(parse(b"#!/bin/sh"), line("/bin/sh", None));
        assert_eq!(parse(b"#!/bin/sh\0 -e\n"), line("/bin/sh", None));
        assert_eq!(parse(b"#!/bin/sh\r\n"), line("/bin/sh\r", None));
    }

    #[test]
    fn a_line_without_a_whole_interpreter_is_refused() {
        assert_eq!(parse(b"#!\n/bin/sh\n"), None);
        assert_eq!(parse(b"#!  \t \n"), None);
        let cut = format!("#!/{}", "a".repeat(253));
        assert_eq!(cut.len(), KERNEL_HEAD);
        assert_eq!(parse(cut.as_bytes()), None);
        let cut_in_the_argument = format!("#!/bin/sh {}", "a".repeat(246));
        assert_eq!(
            parse(cut_in_the_argument.as_bytes()),
            line("/bin/sh", Some(&"a".repeat(246)))
        );
    }

    #[test]
    fn the_script_takes_the_place_of_its_own_name() {
        let argv = vec![b"typed".to_vec(), b"one".to_vec()];
        let rewritten = rewrite_argv(parse(b"#!/bin/sh -e\n").unwrap(), Path::new("./s"), argv);
        assert_eq!(
            rewritten,
            ["/bin/sh", "-e", "./s", "one"].map(|s| s.as_bytes().to_vec())
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut head = b"#!".to_vec();
            head.extend(bytes);
            head.truncate(KERNEL_HEAD);
            if let Some(line) = parse(&head) {
                prop_assert!(!line.interpreter.is_empty());
                prop_assert!(!line.interpreter.iter().any(|b| b"\n\0 \t".contains(b)));
            }
        }
    }
}
