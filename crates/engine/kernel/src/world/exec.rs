//! `execve` in the private world: the program changes, the world stays.

use super::World;
use super::node::Kind;
use super::table::Object;
use super::tree::{Found, LastLink};
use crate::{ExecRequest, Flow, Kernel};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const CHANGED: &str = "the program is replaced (execve) by a file that was made or changed in the private world; only files of the host can be executed there";

/// What is found under the name of a program.
enum Program {
    /// A file of the host, by its real path.
    Real(Vec<u8>),
    /// One that only the world has.
    Made,
}

impl Kernel {
    /// True if the guest's files are data of this process, which must not be lost.
    pub fn has_own_world(&self) -> bool {
        self.world.is_some() || self.following.is_some()
    }

    /// `execve` and `execveat`; `words` are the addresses of path, arguments and environment.
    pub(super) fn private_exec(&mut self, at: i32, words: [u64; 3], flags: i32) -> Flow {
        let path = match self.memory.read_string(words[0]) {
            Ok(path) => path,
            Err(error) => return Flow::error(error),
        };
        let path = match self.special_path(&path) {
            Some(crate::procfs::Special::Program) => self.program_path(),
            _ => path,
        };
        let Some(world) = &mut self.world else {
            return Flow::error(libc::ENOSYS);
        };
        match world.program(at, &path, flags) {
            Ok(Program::Made) => Flow::Refuse(CHANGED.into()),
            Ok(Program::Real(real)) => {
                let path = as_given(at, path, real);
                self.exec_request(path, words[1], words[2])
            }
            Err(error) => Flow::error(error),
        }
    }

    fn exec_request(&mut self, path: Vec<u8>, argv: u64, env: u64) -> Flow {
        let strings = self
            .read_strings(argv)
            .and_then(|argv| Ok((argv, self.read_strings(env)?)));
        match strings {
            Ok((argv, env)) => Flow::Exec(ExecRequest { path, argv, env }),
            Err(error) => Flow::error(error),
        }
    }

    /// The program is about to be replaced in this very process: its memory goes, and what was stored in files is kept.
    pub fn leave_program(&mut self) {
        let memory = &self.memory;
        for world in [&mut self.world, &mut self.following].into_iter().flatten() {
            // What cannot be stored could not be read either.
            let _ = world.sync_range(memory, 0..u64::MAX);
            world.forget_range(&(0..u64::MAX));
        }
        let last = self.memory.mappings().last();
        if let Some(end) = last.map(|(_, mapping)| mapping.end) {
            let _ = self.memory.unmap(0, end);
        }
    }

    /// Becomes the kernel of the new program, in the world of the old one.
    pub fn replace_by(&mut self, mut new: Kernel) {
        std::mem::swap(&mut new.world, &mut self.world);
        std::mem::swap(&mut new.following, &mut self.following);
        std::mem::swap(&mut new.journal, &mut self.journal);
        let program = new.program_path();
        for world in [&mut new.world, &mut new.following].into_iter().flatten() {
            world.replaced(program.clone());
        }
        *self = new;
    }
}

/// The path as the guest gave it, if the host finds the same file there; scripts see it.
fn as_given(at: i32, path: Vec<u8>, real: Vec<u8>) -> Vec<u8> {
    let found = |path: &[u8]| std::fs::canonicalize(Path::new(OsStr::from_bytes(path))).ok();
    let names_it = path.first() == Some(&b'/') || at == libc::AT_FDCWD;
    if names_it && found(&path).is_some_and(|given| Some(given) == found(&real)) {
        path
    } else {
        real
    }
}

impl World {
    fn program(&mut self, at: i32, path: &[u8], flags: i32) -> Result<Program, i32> {
        let node = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            match self.table.get(at)?.object {
                Object::File(node) | Object::Path(node) => node,
                _ => return Err(libc::EACCES),
            }
        } else {
            match self.find(at, path, LastLink::Follow)? {
                Found::Place(place) => place.node.ok_or(libc::ENOENT)?,
                Found::Own(_) => return Err(libc::EACCES),
            }
        };
        let found = self.tree.node(node);
        self.identity.check(&found.meta, libc::X_OK)?;
        let untouched = match &found.kind {
            Kind::File(None) => true,
            Kind::File(Some(content)) => content.is_untouched(),
            _ => return Err(libc::EACCES),
        };
        Ok(match &found.real {
            Some(real) if untouched => Program::Real(real.clone()),
            _ => Program::Made,
        })
    }

    /// Another program runs from now on.
    fn replaced(&mut self, program: Vec<u8>) {
        self.program = program;
        let closed: Vec<i32> = self.table.closed_by_exec().collect();
        for fd in closed {
            let _ = self.close(fd);
        }
    }
}
