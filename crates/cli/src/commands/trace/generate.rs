//! `verdict trace generate`: a made-up trace of any size.

use verdict_events::generate::{Addressing, GenerateOptions, Generator};

use super::destination::OutputArgs;
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict trace generate big.std --events 5000000
  verdict trace generate big.vtrace --events 1000000000 --threads 64 --addresses
  verdict trace generate - --to std --events 20 --threads 2 --seed 7";

/// What the trace is like. The same options give the same trace.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    output: OutputArgs,

    /// Number of events
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().events)]
    events: u64,

    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().threads)]
    threads: u32,

    /// Number of memory locations, at least 16 a thread
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().locations)]
    locations: u64,

    /// Number of locks
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().locks)]
    locks: u32,

    /// Number of sites, at least 64
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().sites)]
    sites: u32,

    /// About how many events a thread does before another takes over
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().run_length)]
    run_length: u32,

    /// Of the sites that run without a lock, one in this many touches what a lock guards, which makes races; 0 for none
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().racy_sites_one_in)]
    racy_sites_one_in: u64,

    /// Once in how many times a critical section is entered; more make longer segments
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().lock_rarity)]
    lock_rarity: u32,

    /// Addresses of 4 and 8 bytes, as in a real program, instead of named locations
    #[arg(long)]
    addresses: bool,

    /// What the random choices start from
    #[arg(long, value_name = "N", default_value_t = GenerateOptions::default().seed)]
    seed: u64,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let mut generator = Generator::new(GenerateOptions {
        events: args.events,
        threads: args.threads,
        locations: args.locations,
        locks: args.locks,
        sites: args.sites,
        run_length: args.run_length,
        racy_sites_one_in: args.racy_sites_one_in,
        lock_rarity: args.lock_rarity,
        addressing: match args.addresses {
            true => Addressing::Addresses,
            false => Addressing::Named,
        },
        seed: args.seed,
    });
    args.output.write(&mut generator, context)?;
    Ok(Exit::Clean)
}
