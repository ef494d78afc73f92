//! A program that takes the place of another one in the same executor.
//!
//! Outside, the executor executes itself anew: descriptors stay, the rest is gone. A private world is data of the executor and would be
//! gone, too; so where there is one, the guest's memory and kernel are made anew around it. What the new program finds is
//! the same either way, because a replay does it the other way.

use crate::policy::Policy;
use crate::{Executor, recording, setup};
use verdict_cpu::layout;
use verdict_kernel::{ExecRequest, Kernel, Options, Registers, WorldMode};
use verdict_loader::LoadPlan;
use verdict_protocol::{ExecutorConfig, Inherited, Mode};
use verdict_recording::{Entry, FileId};

impl Executor {
    /// Puts the program in the place of the current one, here.
    pub(crate) fn replace(&mut self, request: &ExecRequest, inherited: Inherited) {
        if let Err(why) = self.try_replace(request, inherited) {
            self.refused(format!("the new program cannot be started: {why}"));
        }
    }

    fn try_replace(&mut self, request: &ExecRequest, inherited: Inherited) -> Result<(), String> {
        self.config = ExecutorConfig {
            program: request.path.clone(),
            argv: request.argv.clone(),
            env: request.env.clone(),
            inherited: Some(inherited),
            watched: Vec::new(),
            ..self.config.clone()
        };
        let replay = self.kernel.journal.replayer().map(|mut replayer| {
            let header = replayer.take_next_program();
            header.map(|header| recording::next(&mut replayer, header))
        });
        let (ids, at_hand) = match replay.flatten().transpose()? {
            Some(next) => {
                self.config.program = next.enter()?;
                (next.ids(), next.at_hand()?)
            }
            None => (setup::own_ids(), None),
        };
        let plan = setup::plan(&self.config, at_hand)?;
        self.kernel.leave_program();
        self.cache.flush();
        let kernel = self.new_kernel(&plan, ids)?;
        self.kernel.replace_by(kernel);
        self.begin_program(&plan, ids)?;
        self.start_over();
        Ok(())
    }

    fn new_kernel(&self, plan: &LoadPlan, ids: [u32; 4]) -> Result<Kernel, String> {
        let options = Options {
            program: plan.program.path.clone(),
            argv: plan.argv.clone(),
            world: WorldMode::Host,
            ..self.kernel.options.clone()
        };
        let signals = self.kernel.signal_descriptor();
        let mut kernel = Kernel::new(options, Registers::default(), signals);
        if let Some(inherited) = &self.config.inherited {
            kernel.threads[0].signal_mask = inherited.signal_mask;
        }
        kernel.memory.without_shadow = self.kernel.memory.without_shadow;
        setup::inherit(&mut kernel, &self.config);
        setup::load(&mut kernel, plan)?;
        setup::start_stack(&mut kernel, plan, &self.config, ids)?;
        setup::name_thread(&mut kernel, plan);
        Ok(kernel)
    }

    /// What is recorded from here on is of the new program.
    fn begin_program(&mut self, plan: &LoadPlan, ids: [u32; 4]) -> Result<(), String> {
        let attach = match self.config.mode {
            Mode::Record { attach_files, .. } => attach_files,
            Mode::Live | Mode::Replay { .. } => false,
        };
        let retired = self.kernel.retired;
        let Some(mut recorder) = self.kernel.journal.recorder() else {
            return Ok(());
        };
        let header = Box::new(recording::header(&self.config, plan, ids, attach)?);
        recorder.begin_program(retired, &Entry::Exec { header });
        if attach {
            for (index, (_, file)) in recording::sources(plan).into_iter().enumerate() {
                recorder
                    .attach(retired, FileId(index as u32), file)
                    .map_err(|error| format!("a file cannot be attached: {error}"))?;
            }
        }
        Ok(())
    }

    /// Everything that the executor remembers of the old program.
    fn start_over(&mut self) {
        // A copy that explores keeps its scheduler: its choices go on.
        if !self.is_copy() {
            self.scheduler = Policy::of_config(&self.config);
        }
        self.turn = self.config.quantum;
        self.watch = crate::watch::WatchState::default();
        self.single_step = false;
        self.loaded = usize::MAX;
        if let Some(passed) = &mut self.passed {
            passed.start_over();
        }
        (self.switches, self.switches_hash, self.signals) = (0, 0, 0);
        self.preemptions = 0;
        if let Some(events) = &mut self.events {
            events.begin_again(&self.kernel.memory, &mut self.cache);
        }
        debug_assert!(
            self.kernel
                .memory
                .mappings()
                .all(|(_, mapping)| mapping.end <= layout::GUEST_END)
        );
    }
}
