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

/// What the C library does before a program or a thread begins.
const START: [&str; 9] = [
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__libc_start_call_main",
    "__libc_start_main",
    "__libc_start_main_impl",
    "_start",
];

/// Where Rust's own backtraces end: what is outside of it has only brought the program or the thread to its beginning.
const RUST_START: &str = "__rust_begin_short_backtrace";
/// The function through which it calls the program's own.
const RUST_CALL: &str = "core::ops::function::FnOnce::call_once";

/// A stack without the frames at its outer end that every stack has.
pub(crate) fn without_start(mut stack: Vec<Frame>) -> Vec<Frame> {
    let called = |frame: &Frame, name: &str| {
        let function = frame.function.as_deref();
        function.is_some_and(|function| function.contains(name))
    };
    if let Some(start) = stack.iter().position(|frame| called(frame, RUST_START)) {
        stack.truncate(start.max(1));
        while stack.len() > 1 && stack.last().is_some_and(|last| called(last, RUST_CALL)) {
            stack.pop();
        }
    }
    let is_start = |frame: &Frame| {
        let function = frame.function.as_deref();
        function.is_some_and(|function| {
            // The linker may add a version: `__libc_start_main@@GLIBC_2.34`.
            let bare = function.split('@').next().unwrap_or(function);
            START.contains(&bare)
        })
    };
    while stack.len() > 1 && stack.last().is_some_and(is_start) {
        stack.pop();
    }
    stack
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
    fn what_every_stack_has_is_left_out() {
        let function = |name: &str| Frame {
            function: Some(name.to_owned()),
            ..Frame::default()
        };
        let stack = ["worker", "start_thread", "clone3"].map(function).to_vec();
        assert_eq!(without_start(stack), [function("worker")]);
        let rust = [
            "shop::main",
            "core::ops::function::FnOnce::call_once",
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "std::rt::lang_start",
        ];
        let stack = rust.map(function).to_vec();
        assert_eq!(without_start(stack), [function("shop::main")]);
        assert_eq!(
            without_start(vec![function("_start")]),
            [function("_start")]
        );
    }

    #[test]
    fn without_sources_of_its_own_it_is_the_access_itself() {
        let stack = [at(None), at(Some("/rustc/abc/library/core/src/ptr.rs"))];
        assert_eq!(frame(&stack), Some(&stack[0]));
        assert_eq!(frame(&[]), None);
    }
}
