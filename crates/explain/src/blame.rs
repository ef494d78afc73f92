//! Which frame of a stack is to blame for an access: what a library does on behalf of the program is the program's doing.

use verdict_findings::Frame;

/// Where sources of libraries are that come with a compiler or a distribution.
const LIBRARY_SOURCES: [&str; 6] = [
    "/usr/include/",
    "/usr/lib/",
    "/usr/src/",
    "/rustc/",
    "/rust/deps/",
    "/build/",
];
/// The same for paths of a build elsewhere.
const LIBRARY_PARTS: [&str; 4] = [
    "/library/std/src/",
    "/library/core/src/",
    "/library/alloc/src/",
    "/.cargo/registry/",
];

/// The innermost frame of the program's own code, or the innermost one where none is.
pub(crate) fn frame(stack: &[Frame]) -> Option<&Frame> {
    stack
        .iter()
        .find(|frame| frame.file.as_deref().is_some_and(is_own))
        .or_else(|| stack.first())
}

fn is_own(file: &str) -> bool {
    // The C library's sources are named without a folder that is there, by whoever built it.
    file.starts_with('/')
        && !LIBRARY_SOURCES.iter().any(|start| file.starts_with(start))
        && !LIBRARY_PARTS.iter().any(|part| file.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: Option<&str>) -> Frame {
        Frame {
            file: file.map(str::to_owned),
            ..Frame::default()
        }
    }

    #[test]
    fn what_a_library_does_is_the_callers_doing() {
        let stack = [
            at(Some("./string/../sysdeps/x86_64/memmove.S")),
            at(Some("/usr/include/c++/12/bits/stl_algobase.h")),
            at(Some("/home/me/shop.cc")),
            at(Some("/home/me/main.cc")),
        ];
        assert_eq!(frame(&stack), Some(&stack[2]));
    }

    #[test]
    fn without_sources_of_its_own_it_is_the_access_itself() {
        let stack = [at(None), at(Some("/rustc/abc/library/core/src/ptr.rs"))];
        assert_eq!(frame(&stack), Some(&stack[0]));
        assert_eq!(frame(&[]), None);
    }
}
