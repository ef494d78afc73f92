//! The engine's only assembly: how host code enters translated guest code and gets control back.
//!
//! The guest keeps all sixteen general registers, its flags, both segment bases and its whole vector state
//! while it runs; the engine's own state lies in one [`Context`] at a fixed address in the low 2 GB, so that
//! translated code reaches it by absolute addresses without borrowing a register.
//!
//! What must NOT happen: Rust code running with the guest's fs base, flags, MXCSR or x87 state. Each of the
//! three ways out of guest code (exit, fault, asynchronous signal) restores the host's before Rust runs.

mod context;
mod copy;
mod counter;
mod enter;
mod epochs;
pub mod layout;
mod signal;

pub use context::{
    Context, ExitReason, GPR_NAMES, Gpr, RUN_VALUES, STAMP_EPOCH, STAMP_HIDDEN, VectorSlot, offset,
};
pub use copy::{copy_from_guest, copy_to_guest};
pub use counter::{Counters, InPlace, restore_vector};
pub use enter::{
    EntryPoints, enter, enter_translated, entry_points, read_gs_base, vfork, write_gs_base,
};
pub use epochs::forget_stamps;
pub use signal::{HostSignalFrame, SignalVerdict, install_signal_entry, set_signal_stack};
