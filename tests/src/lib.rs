//! The acceptance tests of Rowmill, and the test worlds and tools that they share.
//!
//! # Layers
//!
//! Each layer checks what the one before cannot. Start at the top: the upper layers are faster and name the cause
//! better.
//!
//! | layer | where | what it checks |
//! |---|---|---|
//! | unit | beside the code of each crate | one function or type |
//! | contract suites | `functions/shared/testing/src/contract` | the promises of a port; every adapter runs the same suite |
//! | adapters | `tests/adapters` | the AWS adapters, against local implementations of the services |
//! | protocol | `tests/protocol` | the real use cases in one process ([`world`]); a crash before and after every port call ([`faults`]) |
//! | fuzzing | `tests/fuzz.rs` | the corpus of damaged files, and the first of the seeds that `cargo run --bin fuzz` runs for hours ([`fuzz`]) |
//! | simulation | `tests/simulation.rs` | random schedules and faults, one per seed; invariants after every write ([`simulation`]) |
//! | mutations | `cargo run --bin mutations` | that seeds and tests notice each missing condition of the protocol ([`mutations`]) |
//! | exhaustive model | `exhaustive`, a crate of its own | every interleaving of the counting protocol for the smallest jobs; a model apart from the code |
//! | local stack | `tests/local_stack` | the functions' binaries behind emulated AWS services ([`local_stack`]); a good tenant beside a hostile one ([`tenants`]) |
//! | browser | `tests/browser` | the page in headless Chromium on the local stack |
//! | chaos | `tests/chaos` | the local stack with killed processes, failing AWS calls ([`fault_proxy`]) and repeated messages ([`copies`]) |
//! | template | `tests/template` | `template.yaml` has the permissions, limits and alarms that the code needs |
//!
//! The protocol and simulation tests build the use cases from ports and limits in one place, [`use_cases`]. [`files`]
//! makes input files. [`served`] answers requests of the SDK, [`file_server`] those of fetches. [`oracle`] counts their rows with the `csv` crate,
//! independently of Rowmill's own reader.
//!
//! # A failing seed
//!
//! A seed decides everything in a run of the simulation: the jobs, the limits, the schedule and the faults. When a seed
//! fails, the test prints the trace of the run, then the violated invariant, then the command that repeats the run:
//!
//! ```console
//! $ cargo run --bin simulate -- --from 4711 --seeds 1
//! ```
//!
//! 1. Read the last line first. It names the job or chunk and the numbers that disagree.
//! 2. Go back through the trace to the last line that mentions this job or chunk. A line holds its number, the
//!    simulated time, the task (`#12` is one invocation of a function) and the port call with its answer. Faults stand
//!    out in capital letters: `DIES`, `REPLY LOST`, `TIMES OUT`, `ZOMBIE`.
//! 3. Follow one task by its number to see what the function knew when it made the call.
//! 4. The check that failed is in one of `invariants.rs`, `checks.rs`, `ending.rs` and the files `*_checks.rs` in
//!    `tests/src/simulation`; search them for the words of the message.
//! 5. Reproduce the cause in `tests/protocol`, which can crash at a given call ([`faults::Faults::plan`]) or let
//!    another run overtake ([`faults::Faults::freeze`]). Fix it there, then run the seed again.
//!
//! A trace shows its last 4,000 lines. A fix usually changes what later seeds do, so run many of them:
//! `cargo run --bin simulate -- --seeds 100000`. `ROWMILL_SEEDS` sets the number of seeds of the test itself.

pub mod capacity;
pub mod copies;
pub mod fault_proxy;
pub mod faults;
pub mod file_server;
pub mod files;
pub mod fuzz;
pub mod local_stack;
pub mod mutations;
pub mod oracle;
pub mod progress;
pub mod served;
pub mod simulation;
pub mod tenants;
pub mod use_cases;
pub mod world;
