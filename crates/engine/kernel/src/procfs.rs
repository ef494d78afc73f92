//! Paths that would show the executor instead of the guest.

use crate::Kernel;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What a special path stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// The program's own file.
    Program,
    /// Content made by us.
    Content(Vec<u8>),
    /// The same below another path.
    Redirect(Vec<u8>),
    /// Random bytes without end.
    Random,
}

impl Kernel {
    /// The meaning of a path where it is not the host's.
    pub(crate) fn special_path(&self, path: &[u8]) -> Option<Special> {
        if path == b"/dev/urandom" || path == b"/dev/random" {
            return Some(Special::Random);
        }
        let rest = self.own_proc_path(path)?;
        match rest.as_slice() {
            b"exe" => Some(Special::Program),
            b"maps" => Some(Special::Content(self.maps().into_bytes())),
            b"cmdline" => {
                let mut line = Vec::new();
                for argument in &self.options.argv {
                    line.extend_from_slice(argument);
                    line.push(0);
                }
                Some(Special::Content(line))
            }
            b"environ" => Some(Special::Content(self.initial_environment())),
            b"comm" => Some(Special::Content(self.thread_name(self.main_thread()))),
            _ if let Some(index) = self.named_task(&rest) => {
                Some(Special::Content(self.thread_name(index)))
            }
            _ if path.starts_with(b"/proc/self/") => None,
            _ => Some(Special::Redirect(
                [b"/proc/self/".as_slice(), &rest].concat(),
            )),
        }
    }

    /// What follows `/proc/self/` or `/proc/PID/` with the guest's own pid.
    fn own_proc_path(&self, path: &[u8]) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(b"/proc/")?;
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        let (who, rest) = (&rest[..slash], &rest[slash + 1..]);
        (who == b"self" || who == b"thread-self" || who == self.pid.to_string().as_bytes())
            .then(|| rest.to_vec())
    }

    /// The thread that `task/TID/comm` names.
    fn named_task(&self, rest: &[u8]) -> Option<usize> {
        let tid = rest.strip_prefix(b"task/")?.strip_suffix(b"/comm")?;
        self.thread_by_tid(std::str::from_utf8(tid).ok()?.parse().ok()?)
    }

    /// The thread whose tid is the process's, gone or not.
    fn main_thread(&self) -> usize {
        let main = |thread: &crate::Thread| thread.tid == self.pid;
        self.threads.iter().position(main).unwrap_or(0)
    }

    fn thread_name(&self, index: usize) -> Vec<u8> {
        let name = &self.threads[index].name;
        let len = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        [&name[..len], b"\n"].concat()
    }

    /// The strings that the program was started with, as they are on its stack now.
    fn initial_environment(&self) -> Vec<u8> {
        let range = &self.environment;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match self.memory.read(range.start, &mut bytes) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// The program's file.
    pub(crate) fn program_path(&self) -> Vec<u8> {
        let path = std::fs::canonicalize(&self.options.program)
            .unwrap_or_else(|_| PathBuf::from(&self.options.program));
        path.into_os_string().into_vec()
    }

    /// `/proc/self/maps` as the guest would see it.
    fn maps(&self) -> String {
        let heap = self.memory.heap();
        let stack = self.threads[0].registers.get(verdict_cpu::Gpr::Rsp);
        let mut text = String::new();
        for (start, mapping) in self.memory.mappings() {
            let letter =
                |bit: i32, letter: char| if mapping.prot & bit != 0 { letter } else { '-' };
            let (offset, name) = match &mapping.file {
                Some((path, offset)) => (
                    *offset,
                    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned(),
                ),
                None if start == heap.start => (0, "[heap]".to_string()),
                None if (start..mapping.end).contains(&stack)
                    || mapping.end == verdict_cpu::layout::STACK_TOP =>
                {
                    (0, "[stack]".to_string())
                }
                None => (0, String::new()),
            };
            let sharing = if mapping.shared { 's' } else { 'p' };
            let (inode, device) = if mapping.file.is_some() {
                (1, "00:01")
            } else {
                (0, "00:00")
            };
            let _ = writeln!(
                text,
                "{start:x}-{:x} {}{}{}{sharing} {offset:08x} {device} {inode} {name}",
                mapping.end,
                letter(libc::PROT_READ, 'r'),
                letter(libc::PROT_WRITE, 'w'),
                letter(libc::PROT_EXEC, 'x'),
            );
        }
        text
    }
}
