//! Ctrl-C: unfinished files go away, then the process ends as if it had not noticed.
//!
//! Handlers are installed when the first output file is created and not before: a command that writes no file
//! leaves signals alone, and so does an executor that has the guest's signals to look after.

use std::sync::OnceLock;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use verdict_files::PendingFiles;

/// The unfinished files of this process, guarded against signals from the first one on.
#[derive(Default, Debug)]
pub(crate) struct Interrupts {
    pending: OnceLock<PendingFiles>,
}

impl Interrupts {
    pub(crate) fn pending_files(&self) -> &PendingFiles {
        self.pending.get_or_init(|| {
            let pending = PendingFiles::new();
            remove_on_signal(pending.clone());
            pending
        })
    }
}

fn remove_on_signal(pending: PendingFiles) {
    // Without handlers the default action ends the process and leaves a file named `.partial`: worse, not wrong.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        return;
    };
    thread::spawn(move || {
        for signal in signals.forever() {
            pending.remove_all();
            // Dying of the signal itself, not with a code of ours, is what shells and `make` expect.
            let _ = emulate_default_handler(signal);
        }
    });
}
