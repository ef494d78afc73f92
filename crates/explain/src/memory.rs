//! What is at an address.

use verdict_findings::{Variable, VariableKind, text_of_bytes};
use verdict_symbolize as symbolize;

use crate::{Code, HeapBlock, RawLock, RawMemory, RawRun};

/// The variable or block that holds `size` bytes at an address.
pub(crate) fn variable(
    memory: &RawMemory,
    address: u64,
    size: u64,
    run: &RawRun,
    code: &mut Code,
) -> Variable {
    match memory {
        RawMemory::Static => global(address, size, run, code),
        RawMemory::Heap(block) => heap(block, address, code),
        RawMemory::Stack {
            thread,
            thread_pointer,
            frame,
        } => {
            // The thread-local variables of a thread are in the same memory, above its stack.
            let local = thread_pointer.and_then(|pointer| {
                code.symbolizer
                    .thread_local(&run.executable, pointer, address, size)
            });
            match local {
                Some(found) => Variable {
                    thread: Some(*thread),
                    ..named(found, VariableKind::ThreadLocal)
                },
                None => stack(*thread, frame.as_ref()),
            }
        }
        RawMemory::ThreadLocal {
            thread,
            thread_pointer,
        } => {
            let found =
                code.symbolizer
                    .thread_local(&run.executable, *thread_pointer, address, size);
            Variable {
                thread: Some(*thread),
                ..found.map_or_else(
                    || Variable {
                        kind: VariableKind::ThreadLocal,
                        ..Variable::default()
                    },
                    |found| named(found, VariableKind::ThreadLocal),
                )
            }
        }
    }
}

fn global(address: u64, size: u64, run: &RawRun, code: &mut Code) -> Variable {
    match code.symbolizer.variable(&run.modules, address, size) {
        Some((module, found)) => Variable {
            module: Some(text_of_bytes(module.as_os_str().as_encoded_bytes())),
            ..named(found, VariableKind::Global)
        },
        None => match code.symbolizer.module_of(&run.modules, address) {
            Some(module) => Variable {
                kind: VariableKind::Global,
                module: Some(text_of_bytes(module.as_os_str().as_encoded_bytes())),
                ..Variable::default()
            },
            None => Variable::default(),
        },
    }
}

fn heap(block: &HeapBlock, address: u64, code: &mut Code) -> Variable {
    Variable {
        kind: VariableKind::Heap,
        size: Some(block.size),
        offset: address.checked_sub(block.start),
        thread: block.thread,
        allocated_at: crate::blame::without_start(code.stack(&block.allocated_at)),
        ..Variable::default()
    }
}

fn stack(thread: u32, frame: Option<&symbolize::FrameVariable>) -> Variable {
    let found = frame.and_then(|frame| frame.variable.clone());
    let known = found.map_or_else(Variable::default, |found| named(found, VariableKind::Stack));
    Variable {
        kind: VariableKind::Stack,
        thread: Some(thread),
        function: frame.and_then(|frame| frame.function.clone()),
        ..known
    }
}

fn named(found: symbolize::Variable, kind: VariableKind) -> Variable {
    Variable {
        name: Some(found.name),
        kind,
        type_name: found.type_name,
        line: found.declared.as_ref().and_then(|source| source.line),
        file: found.declared.map(|source| source.file),
        size: found.size,
        offset: Some(found.offset),
        function: found.function,
        ..Variable::default()
    }
}

/// What a lock is called: its variable, or where it is.
pub(crate) fn lock_name(lock: &RawLock, run: &RawRun, code: &mut Code) -> String {
    let variable = variable(&lock.memory, lock.address, 1, run, code);
    if let Some(name) = variable.name {
        // The mutex itself, not the field of the library's struct that its first byte is.
        return without_library_fields(&name).to_owned();
    }
    match (variable.kind, variable.offset, variable.size) {
        (VariableKind::Heap, Some(offset), Some(size)) => {
            format!("a lock {offset} bytes into a heap block of {size} bytes")
        }
        (VariableKind::Stack, ..) => "a lock on a stack".to_owned(),
        _ => format!("the lock at {:#x}", lock.address),
    }
}

fn without_library_fields(name: &str) -> &str {
    let library = [".__data", "._M_mutex", "._M_impl", ".inner.futex", ".inner"];
    let cut = library.iter().filter_map(|field| name.find(field)).min();
    &name[..cut.unwrap_or(name.len())]
}
